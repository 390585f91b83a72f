"""Sessions as the rubric judge scores them."""

from collections.abc import Mapping, Sequence

from providers.request import Reply
from suites.base import Exchange, Item, Sample
from suites.session_review.baselines.rubric_judge import judge
from suites.session_review.conversation import converse
from suites.session_review.score import score
from suites.session_review.session import Interaction, Session, Stage, Tool
from suites.session_review.sources.read import sample_of

Messages = Sequence[Mapping[str, str]]


def review(sample: Sample) -> dict[str, object]:
    """The row of a session that the embedded judge scores."""
    item = Item(sample, "agents", "baseline/rubric-judge")
    answered: list[Exchange] = []
    while (request := converse(item, answered, {})) is not None:
        answered.append(Exchange(request.prompt_hash, Reply(judge(request.messages))))
    (row,) = score(item, answered)["session_scores"]
    return dict(row)


def total(sample: Sample) -> int:
    given = review(sample)["total_score"]
    assert isinstance(given, int)
    return given


def opening(session: Session) -> Messages:
    request = converse(Item(sample_of(session, "tests"), "agents", "j"), [], {})
    assert request is not None
    return request.messages


def a_session(*interactions: Interaction, analysis: str = "It was the disk.", **changes: str) -> Session:
    tools = (Tool("search_logs", "x"), Tool("get_metrics", "x"))
    stage = Stage("investigation", "a", "completed", interactions, tools)
    return Session("s", "completed", "a", "disk full", final_analysis=analysis, stages=(stage,), **changes)  # type: ignore[arg-type]
