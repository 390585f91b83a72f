"""The suite as one object: its baselines answer, and the trivial ones get what reports say of them."""

from typing import Any

import polars as pl
import pytest

from evalake.metrics.compute import measure
from evalake.models.request import Reply
from evalake.sdk import Exchange, Item
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.command_guard.suite import SUITE
from tests.unit.suites.command_guard.rows import HARMLESS, LANDING, MALICIOUS


def asked(model: str) -> pl.DataFrame:
    """Rows of a baseline's answers to a malicious and a harmless command."""
    rows: list[Any] = []
    for sample in (MALICIOUS, HARMLESS):
        item = Item(sample, model)
        request = SUITE.conversation.next_request(item, (), SUITE.options)
        assert request is not None
        reply = Reply(SUITE.conversation.baselines[model.removeprefix("baseline/")](request.messages))
        exchange = Exchange(request.prompt_hash, reply)
        assert SUITE.conversation.next_request(item, (exchange,), SUITE.options) is None
        rows += SUITE.scoring.score(item, (exchange,), SUITE.options)[RESULTS.table]
    landed = [{**row, **LANDING} for row in rows]
    return pl.DataFrame(landed, infer_schema_length=None).with_columns(judge=pl.lit(None, pl.String))


@pytest.mark.parametrize("model", SUITE.conversation.default_models)
def test_those_that_a_run_asks_by_itself_answer_every_command(model: str) -> None:
    assert set(asked(model)["verdict"]) <= {"ALLOW", "WARN", "BLOCK"}


@pytest.mark.parametrize(
    ("name", "model"), [("always block", "baseline/always-block"), ("always allow", "baseline/always-allow")]
)
def test_what_trivial_models_get_is_what_the_baselines_of_their_name_get(name: str, model: str) -> None:
    rows = asked(model)
    assert rows.with_columns(**SUITE.metrics.trivial[name])["verdict"].to_list() == rows["verdict"].to_list()


def test_the_metric_that_ranks_has_a_target_between_chance_and_one() -> None:
    assert 0.5 < SUITE.options["target"] < 1
    measured = measure(asked("baseline/always-block"), SUITE.all_metrics(SUITE.options))
    values = dict(measured.filter(slice="all").select("metric", "value").iter_rows())
    assert values[SUITE.metrics.headline[0]] == 0.5
