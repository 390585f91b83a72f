"""Tests of the rows that benchmarks make up: they follow the contracts, as the rows that users have do."""

from pathlib import Path

from benchmarks.judgements import judged_audits
from benchmarks.queries import fill_results
from evalake.metrics.compute import measure
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.solidity_audit.suite import SUITE
from evalake.suites.solidity_audit.truth import DEFAULTS


def test_results_of_queries_meet_their_contract(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    fill_results(lake, 20)
    assert lake.frame(RESULTS).collect().height == 20


def test_judged_audits_have_what_every_metric_reads() -> None:
    rows = judged_audits(300)
    values = measure(rows, SUITE.all_metrics(DEFAULTS), cluster="cluster")
    assert set(values["model"].unique()) == set(rows["model"].unique())
    assert SUITE.metrics.across_rows is not None
    assert SUITE.metrics.across_rows(rows, DEFAULTS).height
