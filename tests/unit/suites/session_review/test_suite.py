"""The suite as one object: by its own baselines starter sessions become rows that keep their contracts."""

import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.sdk.figures import Bars
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.metrics import BANDS
from evalake.suites.session_review.replies import CATEGORIES
from evalake.suites.session_review.suite import SUITE
from tests.unit.suites.declared import converse_with_baselines
from tests.unit.suites.session_review.support import item, talk

STARTER = {sample.sample_id: sample for sample in SUITE.data.read(*SUITE.data.starter).samples}


@pytest.mark.parametrize("name", STARTER)
def test_starter_sessions_come_to_rows_that_keep_their_contracts(name: str) -> None:
    asked, answered = converse_with_baselines(
        SUITE, STARTER[name], *SUITE.conversation.default_models, *SUITE.conversation.default_judges
    )
    rows = SUITE.scoring.score(asked, answered, SUITE.options)
    for contract in SUITE.contracts:
        landed = conform([{**each, "landed_by_run": "r", "origin": "call"} for each in rows[contract.table]], contract)
        assert audit(landed, contract).bad.is_empty()
    (scoring,) = rows[RESULTS.table]
    assert (scoring["session_id"], scoring["status"], scoring["model"]) == (name, "completed", "agents")
    tools = [tool["tool_name"] for tool in rows[MISSING_TOOLS.table] if tool["kind"] != "improvable"]
    assert scoring["missing_tools"] == list(dict.fromkeys(tools))


def test_usual_replies_take_a_conversation_its_usual_way() -> None:
    """By them calls are counted before any is made: one review, one question for tools."""
    requests, answered = talk(item(), *SUITE.conversation.usual_replies, "never asked")
    assert len(requests) == len(answered) == len(SUITE.conversation.usual_replies) == 2
    assert SUITE.scoring.score(item(), answered, SUITE.options)[RESULTS.table][0]["status"] == "completed"


def test_figures_name_bands_and_categories_as_metrics_have_them() -> None:
    bars = {figure.title: figure.quantities for figure in SUITE.presentation.figures if isinstance(figure, Bars)}
    bands, categories = bars["Scores by band"], bars["Mean points by category, of 25"]
    assert [(each.metric, each.label) for each in bands] == [
        (f"score_band_{name}_rate", f"{lowest} to {highest}") for name, (lowest, highest) in BANDS.items()
    ]
    assert [each.metric for each in categories] == [f"category_mean_{name}" for name in CATEGORIES]
