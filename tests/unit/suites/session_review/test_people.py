"""What experts are shown of a session: the text that its judge reads, shortened as for one, and no judgement."""

import pytest

from evalake.sdk import Seen
from evalake.suites.session_review.people import BUDGET, LABELLING, SESSION
from evalake.suites.session_review.replies import CATEGORIES
from evalake.suites.session_review.session import FINAL_ANALYSIS
from evalake.suites.session_review.sources.read import read_dataset


def test_experts_are_asked_for_the_points_that_a_judge_gives_and_shown_the_session_alone() -> None:
    assert [question.name for question in LABELLING.questions] == ["score", *CATEGORIES]
    assert [question.most for question in LABELLING.questions] == [100, 25, 25, 25, 25]
    assert LABELLING.material == ("session",)
    assert SESSION.blind


@pytest.mark.parametrize("number", range(3))
def test_a_session_is_shown_up_to_its_end(number: int) -> None:
    sample = read_dataset("starter").samples[number]
    (show,) = SESSION.shown.values()
    text = show(Seen({"total_score": 71}, {"dataset": sample.dataset, "input": sample.input}, "71"))
    assert text is not None
    assert FINAL_ANALYSIS in text
    assert len(text) <= BUDGET
    assert show(Seen({}, {}, None)) is None
