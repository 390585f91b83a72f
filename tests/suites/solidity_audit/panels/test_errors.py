"""Error rates of a panel's judges, by which Dawid and Skene weigh them."""

import polars as pl
import pytest

from suites.solidity_audit.cross_row_metrics import cross_row_metrics
from tests.suites.solidity_audit.panels.material import DAWID_SKENE, by_dawid_skene, poor_and_good


def test_the_error_rates_of_its_judges_stand_with_a_panel_by_dawid_and_skene() -> None:
    _, frame = by_dawid_skene(poor_and_good())
    rows = cross_row_metrics(frame, DAWID_SKENE).filter(pl.col("slice") == "judge_panel")
    panel = "panel:dawid_skene:good 1+good 2+poor 0+poor 1+poor 2"
    assert set(rows["judge"]) == {panel}
    rates = {(row["slice_value"].split("~")[0], row["metric"]): (row["value"], row["n"]) for row in rows.to_dicts()}
    for ending in ("", "_verdict", "_finding_valid"):
        for rate in ("judge_miss_rate", "judge_false_alarm_rate"):
            assert rates["good 1", rate + ending] == (pytest.approx(0, abs=1e-6), 32)
            assert rates["poor 0", rate + ending] == (pytest.approx(0.5, abs=1e-6), 32)
