"""A panel's rows: of all its judges in the run, with medians, and the same from the same judgements."""

import polars as pl
import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics
from evalake.suites.solidity_audit.panels.rows import derive
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.solidity_audit.panels.material import (
    JUDGES,
    by_dawid_skene,
    classed,
    derived_of,
    panel,
    poor_and_good,
    said,
    with_panel,
)
from tests.unit.suites.solidity_audit.support import found, landed, line, missed, rows_of, values_of


def test_scores_are_medians() -> None:
    assert panel(said(True, 0.2), said(True, 0.9), said(True, 0.6))["rcir"] == 0.6
    assert panel(said(False), said(True, 0.9), said(False))["rcir"] is None


def test_a_panels_precision_lies_among_its_judges_and_its_index_exists() -> None:
    precise = {"a": 77, "b": 83, "c": 81}
    lines = [
        line(n, judged=classed("BONUS_VALID" if n < of else "HALLUCINATED"), judge=judge)
        for judge, of in precise.items()
        for n in range(100)
    ]
    frame = with_panel(lines).filter(pl.col("judge") == "panel:a+b+c")
    values = values_of(frame.with_columns(bonus_confirmed=0, bonus_rejected=0))
    assert values["finding_precision"]["value"] == pytest.approx(0.81)
    assert values["hallucination_rate"]["value"] == pytest.approx(0.19)
    assert values["sui"]["value"] is not None


def test_one_judge_is_no_panel_and_two_on_different_samples_are_none() -> None:
    alone = [line(0, judged=said(True)), line(1, judged=said(True))]
    apart = [line(0, judged=said(True), judge="a"), line(1, judged=said(True), judge="b")]
    assert derived_of(alone).rows[RESULTS.table] == derived_of(apart).rows[RESULTS.table] == []


def test_a_panel_that_is_declared_leaves_other_judges_out_of_its_rows_and_agreement() -> None:
    lines = [line(0, judged=said(judge != "c"), judge=judge) for judge in JUDGES]
    frame = with_panel(lines, options := {**DEFAULTS, "panel": ["a", "b"]})
    assert frame.filter(pl.col("judge").str.starts_with("panel"))["judge"].to_list() == ["panel:a+b"]
    agreed = cross_row_metrics(frame, options).filter(metric="unanimous_rate")
    assert agreed.select("judge", "value").rows() == [("panel:a+b", 1.0)]


def test_a_quarantined_judgement_is_no_answer_but_its_judge_stays_in_the_panel() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in JUDGES]
    lines += [line(1, judged=said(True), judge="a"), line(1, judged=said(False), judge="b")]
    rows = {row["sample_id"]: row for row in derived_of(lines).rows[RESULTS.table]}
    assert {row["judge"] for row in rows.values()} == {"panel:a+b+c"}
    assert rows["s1"]["panel_undecided"] is True


def test_deriving_again_from_rows_with_the_panel_gives_the_same() -> None:
    results, findings = rows_of([line(0, judged=said(True), judge=judge) for judge in JUDGES])
    first = derive({RESULTS.table: results, FINDINGS.table: findings}, DEFAULTS).rows[RESULTS.table]
    again = pl.concat([results, landed(first)])
    assert derive({RESULTS.table: again, FINDINGS.table: findings}, DEFAULTS).rows[RESULTS.table] == first


def test_an_undecided_sample_leaves_the_rates_and_is_counted() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in "ab"]
    lines += [line(1, judged=said(answer), judge=judge) for judge, answer in (("a", True), ("b", False))]
    derived = landed(derived_of(lines).rows[RESULTS.table])
    frame = derived.with_columns(bonus_confirmed=0, bonus_rejected=0, confidence_bin=pl.lit(None, pl.String))
    values = values_of(frame)
    assert (values["target_detection_rate"]["value"], values["target_detection_rate"]["n"]) == (1.0, 1)
    assert (values["panel_undecided_rate"]["value"], values["panel_undecided_rate"]["n"]) == (0.5, 2)
    assert values["judge_error_rate"]["value"] is None
    assert (values["finding_precision"]["value"], values["finding_precision"]["n"]) == (1.0, 2)
    assert (values["findings_undecided_rate"]["value"], values["findings_undecided_rate"]["n"]) == (0.0, 2)


@pytest.mark.slow
def test_panels_of_either_kind_never_share_a_row_and_a_majority_has_no_error_rates() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in JUDGES]
    rows, _ = by_dawid_skene(lines)
    by_most = derived_of(lines).rows[RESULTS.table]
    assert {row["judge"] for row in (*rows, *by_most)} == {"panel:a+b+c", "panel:dawid_skene:a+b+c"}
    assert rows[0]["judge_hash"] != by_most[0]["judge_hash"]
    assert "judge_panel" not in set(cross_row_metrics(with_panel(lines), DEFAULTS)["slice"])


def test_a_panel_by_dawid_and_skene_is_of_all_its_judgements() -> None:
    """The same judgements give the same rows; with one audit less it is another pool, though the words are the same."""
    lines = poor_and_good()
    first, again, fewer = (by_dawid_skene(of)[0] for of in (lines, lines[::-1], lines[:-5]))
    hashes = [{row["sample_id"]: row["judge_hash"] for row in rows} for rows in (first, again, fewer)]
    assert hashes[0] == hashes[1]
    assert all(hashes[0][name] != other for name, other in hashes[2].items())
    contracts = conform([{**row, "landed_by_run": "r", "origin": "import"} for row in first], RESULTS)
    assert audit(contracts, RESULTS).bad.is_empty()


def test_derived_rows_keep_the_contract_of_the_results() -> None:
    judged = [found(), missed(said=False), None]
    lines = [line(0, judged=each, judge=f"j{n}") for n, each in enumerate(judged)]
    results, findings = rows_of(lines)
    derived = derive({RESULTS.table: results, FINDINGS.table: findings}, DEFAULTS)
    assert audit(landed(derived.rows[RESULTS.table]), RESULTS).bad.is_empty()
