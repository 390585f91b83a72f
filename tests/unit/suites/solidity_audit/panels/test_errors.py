"""Error rates of a panel's judges, by which Dawid and Skene weigh them."""

import polars as pl
import pytest

from evalake.suites.solidity_audit.panels.rows import judge_errors
from tests.unit.suites.solidity_audit.panels.material import by_dawid_skene, poor_and_good, told, with_panel
from tests.unit.suites.solidity_audit.support import frame_of


def test_the_error_rates_of_its_judges_stand_with_a_panel_by_dawid_and_skene() -> None:
    _, frame = by_dawid_skene(poor_and_good())
    rows = judge_errors(frame).filter(pl.col("slice") == "judge_panel")
    panel = "panel:dawid_skene:good 1+good 2+poor 0+poor 1+poor 2"
    assert set(rows["judge"]) == {panel}
    rates = {(row["slice_value"].split("~")[0], row["metric"]): (row["value"], row["n"]) for row in rows.to_dicts()}
    for ending in ("", "_verdict", "_finding_valid"):
        for rate in ("judge_miss_rate", "judge_false_alarm_rate"):
            assert rates["good 1", rate + ending] == (pytest.approx(0, abs=1e-6), 32)
            assert rates["poor 0", rate + ending] == (pytest.approx(0.5, abs=1e-6), 32)


def test_the_rates_are_over_all_models_and_stand_with_each() -> None:
    lines = [{**each, "model": model} for model in ("one", "two") for each in poor_and_good()[:80]]
    rows = judge_errors(by_dawid_skene(lines)[1])
    of = {model: rows.filter(model=model).drop("model") for model in ("one", "two")}
    assert of["one"].equals(of["two"])
    assert of["one"].filter(metric="judge_miss_rate")["n"].to_list() == [16] * 5


def test_without_a_panel_by_dawid_and_skene_there_are_none() -> None:
    lines = [told(judge, number, found=True) for judge in "abc" for number in range(3)]
    assert judge_errors(frame_of(lines)).is_empty()
    assert judge_errors(with_panel(lines)).is_empty()
