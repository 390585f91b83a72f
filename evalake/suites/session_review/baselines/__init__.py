"""A rule-based judge of sessions: the bar that a model must beat."""

from collections.abc import Mapping

from evalake.models.request import Baseline, Messages


def _rubric_judge(messages: Messages) -> str:
    from evalake.suites.session_review.baselines.rubric import judge

    return judge(messages)


BASELINES: Mapping[str, Baseline] = {"rubric-judge": _rubric_judge}
