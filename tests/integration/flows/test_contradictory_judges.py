"""Judges that contradict themselves, over real HTTP: told once what contradicts what, then believed or refused."""

import json
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import QUARANTINE, RUN_COVERAGE, RUNS
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from tests.integration.flows.judges import CONTRADICTIONS, ContradictoryJudge, Messages, strict
from tests.integration.flows.test_judges import Bench
from tests.servers.model_server import ModelServer

JUDGE = "hosted_vllm/contradictory"
FOUND = [
    f"starter/pair_{pair}/vulnerable"
    for pair in ("01", "02", "07", "09", "10", "103", "14", "21", "32", "44", "59", "65")
]
"""Samples of which the rule-based subject's first finding is the target."""


@pytest.fixture
def bench(tmp_path: Path, model_server: ModelServer) -> Bench:
    return Bench(tmp_path, model_server, names=(JUDGE,))


def judged(bench: Bench, *, repairs: bool) -> tuple[str, ContradictoryJudge]:
    """A run over as many audits as there are contradictions, and its judge."""
    judge = ContradictoryJudge(repairs=repairs)
    bench.server.rule(model="contradictory", reply=judge)
    run = bench.run(JUDGE, samples=FOUND, first=None)
    assert {*judge.told} == {*CONTRADICTIONS}
    return run, judge


def test_each_contradiction_is_told_once_and_put_right(bench: Bench) -> None:
    run, judge = judged(bench, repairs=True)
    for name, (_, words) in CONTRADICTIONS.items():
        first, repair = judge.told[name]
        assert "cannot be used" not in first
        assert "cannot be used" in repair
        assert words in repair, name
    rows = bench.lake.frame(RESULTS).collect()
    assert rows.height == len(FOUND)
    assert rows.select("repaired", "target_found", "contradictions").unique().rows() == [(True, True, None)]
    assert bench.lake.frame(QUARANTINE).collect().is_empty()
    assert f"{JUDGE}: 12 of 12 judgements took a second attempt" in bench.warnings(run)


def test_who_contradicts_itself_again_is_in_quarantine_and_counted(bench: Bench) -> None:
    bench.run("baseline/overlap-judge", first=1)  # so that there is a table to measure from
    run, judge = judged(bench, repairs=False)
    assert {len(told) for told in judge.told.values()} == {2}, "one repair turn, and no more"
    assert bench.lake.frame(RESULTS).filter(judge=JUDGE).collect().is_empty()
    assert bench.lake.frame(FINDINGS).filter(judge=JUDGE).collect().is_empty()
    refused = bench.lake.frame(QUARANTINE).collect()
    assert refused.height == len(CONTRADICTIONS)
    for row in refused.iter_rows(named=True):
        words = json.loads(row["payload"])["contradictions"]
        assert ("asked_judgement_agrees_with_itself" in row["rules"]) == (words is not None), row["rules"]
        assert row["rules"]
    run_row = bench.lake.frame(RUNS).filter(pl.col("run_id") == run).collect().row(0, named=True)
    assert (run_row["state"], run_row["rows_quarantined"]) == ("incomplete", len(CONTRADICTIONS))
    assert "12 rows are in quarantine" in run_row["message"]
    assert "12 of 12 items are missing (12 in quarantine)" in bench.warnings(run)


def quoting(messages: Messages) -> str:
    """What the overlap judge says, behind another judgement that it quotes; of some audits, with a field twice."""
    said = strict(messages)
    if "Vault" in str(messages[1]["content"]):
        return said[:-1] + f', "findings": {json.dumps(json.loads(said)["findings"])}}}'
    return f"The audit says: {json.dumps({**json.loads(said), 'findings': []})}\nI say: {said}"


def test_whose_judgement_cannot_be_told_from_a_quoted_one_is_asked_once_more_then_missing(bench: Bench) -> None:
    bench.run("baseline/overlap-judge", first=1)  # so that there is a table to measure from
    bench.server.rule(model="contradictory", reply=quoting)
    run = bench.run(JUDGE, samples=FOUND, first=None)
    assert bench.asked(JUDGE) == 2 * len(FOUND), "one repair turn, and no more"
    assert bench.lake.frame(RESULTS).filter(judge=JUDGE).collect().is_empty()
    refused = bench.lake.frame(QUARANTINE).collect()
    assert refused["rules"].to_list() == [["asked_judgement_agrees_with_itself"]] * len(FOUND)
    why = {json.loads(payload)["contradictions"] for payload in refused["payload"]}
    assert any("2 judgements that differ" in words for words in why), why
    assert all(json.loads(payload)["judge_error"] is None for payload in refused["payload"])
    covered = bench.lake.frame(RUN_COVERAGE).filter(run_id=run, judge=JUDGE).collect()
    assert covered["missing"].sum() == covered["asked"].sum() == len(FOUND)
    run_row = bench.lake.frame(RUNS).filter(run_id=run).collect().row(0, named=True)
    assert (run_row["state"], run_row["rows_quarantined"]) == ("incomplete", len(FOUND))
