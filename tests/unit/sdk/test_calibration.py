"""Known judgements: a judge is asked about each next, and what it says stands beside what is known."""

import pytest

from evalake.metrics.agreement import PAIRS
from evalake.models.request import Reply
from evalake.sdk import Exchange
from evalake.suites.registry import suite, suite_names

CALIBRATED = [name for name in suite_names() if suite(name).calibration is not None]


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_judge_is_asked_next_and_compared_with_what_is_known(name: str) -> None:
    of = suite(name)
    assert of.calibration is not None
    judge = of.conversation.default_judges[0]
    complete = []
    for item, answered in list(of.calibration.items(judge))[:3]:
        assert item.judge == judge
        request = of.conversation.next_request(item, answered, of.options)
        assert request is not None
        assert request.model == judge, "what comes before the judge's turn is answered already"
        reply = Reply(of.conversation.baselines[judge.removeprefix("baseline/")](request.messages))
        complete.append((item, [*answered, Exchange(request.prompt_hash, reply)]))
    pairs = of.calibration.compare(complete)
    assert set(PAIRS) <= {*pairs.columns}
    assert pairs["decision"].n_unique() > 0
    assert {*pairs["decision"]} <= {*of.calibration.decisions}


@pytest.mark.parametrize("name", CALIBRATED)
def test_each_item_is_another_one(name: str) -> None:
    calibration = suite(name).calibration
    assert calibration is not None
    asked = [
        (item.sample.sample_hash, item.replicate, *(exchange.prompt_hash for exchange in answered))
        for item, answered in calibration.items("a/judge")
    ]
    assert len(set(asked)) == len(asked) > 0
