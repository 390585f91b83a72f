"""Panels: rows, consensus, errors, findings and bias."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import pearsonr

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.core.hashing import content_hash
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics
from evalake.suites.solidity_audit.panels import derive, family, judge_bias, judge_errors
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.cases import cases_beside
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
from tests.unit.suites.solidity_audit.support import (
    SAFE,
    finding,
    frame_of,
    judgement,
    landed,
    line,
    rows_of,
    target,
    values_of,
)

CASES = cases_beside(__file__, "panels.json")

# A panel's rows: of all its judges in the run, with medians, and the same from the same judgements.


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


def test_a_panel_by_dawid_and_skene_is_of_all_its_judgements() -> None:
    """The same judgements give the same rows; with one audit less it is another pool, though the words are the same."""
    lines = poor_and_good()
    first, again, fewer = (by_dawid_skene(of)[0] for of in (lines, lines[::-1], lines[:-5]))
    hashes = [{row["sample_id"]: row["judge_hash"] for row in rows} for rows in (first, again, fewer)]
    assert hashes[0] == hashes[1]
    assert all(hashes[0][name] != other for name, other in hashes[2].items())
    contracts = conform([{**row, "landed_by_run": "r", "origin": "import"} for row in first], RESULTS)
    assert audit(contracts, RESULTS).bad.is_empty()


def test_a_panels_row_is_of_the_replies_that_there_are(tmp_path: Path) -> None:
    results, findings = rows_of([line(0, judged=said(True), judge=judge) for judge in JUDGES])
    answered = pl.col("judge") != "c"
    failed = pl.when(~answered).then(pl.lit("timeout")).alias("judge_error")
    early = results.with_columns(failed, pl.when(answered).then("judgement_hash"))
    unasked = results.with_columns(subject_error=pl.lit("timeout"), judgement_hash=pl.lit(None, pl.String))
    (whole,), (before,), (nothing,) = (
        derive({RESULTS.table: rows, FINDINGS.table: findings}, DEFAULTS).rows[RESULTS.table]
        for rows in (results, early, unasked)
    )
    hashes = [content_hash(["panel:a+b+c", sorted(rows["judge_hash"])]) for rows in (results, results.filter(answered))]
    assert [row["judge_hash"] for row in (whole, before, nothing)] == [*hashes, hashes[0]]
    assert nothing["judgement_hash"] is None
    land(lake := Lake(str(tmp_path)), RESULTS, landed([{**before, "judge_hash": hashes[0]}]))  # as it was once
    assert land(lake, RESULTS, landed([whole])).replaced == 1


# A panel's word: a strict majority of two answers or more, or what is likelier than not by Dawid and Skene.


@pytest.mark.parametrize(("answers", "found", "undecided"), CASES["majorities"])
def test_a_strict_majority_of_two_answers_or_more_decides(answers: Any, found: bool | None, undecided: bool) -> None:
    row = panel(*map(said, answers))
    assert (row["target_found"], row["panel_undecided"]) == (found, undecided)
    assert row["judge"] == "panel:" + "+".join(JUDGES[: len(answers)])
    assert (row["panel_judges"], row["panel_answers"]) == (len(answers), sum(a is not None for a in answers))


def test_verdicts_have_a_majority_of_their_own() -> None:
    row = panel(said(True, verdict=True), said(True, verdict=False))
    assert (row["target_found"], row["detection_correct"], row["panel_undecided"]) == (True, None, False)
    row = panel(said(False, verdict=None), said(False, verdict=None), said(False, verdict=True))
    assert (row["said_vulnerable"], row["detection_correct"]) == (None, False)


def test_on_a_safe_contract_the_panel_decides_on_the_verdict() -> None:
    clean = judgement(said=False)
    assert panel(clean, clean, truth=SAFE)["panel_undecided"] is False
    assert panel(clean, judgement(said=True), truth=SAFE)["panel_undecided"] is True


def test_dawid_and_skene_follow_the_good_judges_where_poor_ones_have_the_majority() -> None:
    lines = poor_and_good()
    truth = {f"s{number}": number % 2 == 0 for number in range(64)}
    rows, _ = by_dawid_skene(lines)
    assert {row["judge"] for row in rows} == {"panel:dawid_skene:good 1+good 2+poor 0+poor 1+poor 2"}
    for decision in ("target_found", "said_vulnerable"):
        assert {row["sample_id"]: row[decision] for row in rows} == truth
    assert {row["sample_id"]: row["target_match_findings"] == 1 for row in rows} == truth
    by_most = {row["sample_id"]: row["target_found"] for row in derived_of(lines).rows[RESULTS.table]}
    assert sum(by_most[name] != found for name, found in truth.items()) == 8  # where all three err


@pytest.mark.parametrize(("word", "strictly"), [(None, False), (False, False), (True, True)])
def test_a_strict_vote_counts_a_target_in_its_function_or_where_the_judge_calls_its_place_right(
    word: bool | None, strictly: bool
) -> None:
    """Of three judges that found the target, one found a part of it, two name another function."""
    elsewhere = judgement([finding(location_claimed="deposit()")], target())
    perhaps = judgement([finding(location_claimed="deposit()")], target(location_match=word))
    partly = judgement([finding(1, "PARTIAL_MATCH", location_claimed="withdraw()")], target())
    lines = [
        line(0, judged=judged, judge=judge) for judge, judged in zip("abc", (partly, elsewhere, perhaps), strict=True)
    ]
    results, findings = rows_of(lines)
    for way, matched in (("majority", True), ("strict", strictly)):
        derived = derive({RESULTS.table: results, FINDINGS.table: findings}, {**DEFAULTS, "aggregation": way})
        (row,) = derived.rows[RESULTS.table]
        assert (row["target_found"], row["panel_undecided"]) == (matched, False)
        assert row["judge"] == ("panel:a+b+c" if way == "majority" else "panel:strict:a+b+c")


# Error rates of a panel's judges, by which Dawid and Skene weigh them.


def test_the_error_rates_of_its_judges_stand_with_a_panel_by_dawid_and_skene() -> None:
    _, frame = by_dawid_skene(poor_and_good())
    assert judge_errors(with_panel(poor_and_good())).is_empty(), "a majority has none"
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


# Findings of several judges, merged by number or by place and type, are what most of their judges say.


def test_findings_are_one_by_the_number_that_the_audit_gives_them_and_their_class_is_the_majority() -> None:
    row = panel(
        classed("BONUS_VALID", "HALLUCINATED", "DESIGN_CHOICE"),
        classed("PARTIAL_MATCH", "HALLUCINATED", "OUT_OF_SCOPE"),
        classed("HALLUCINATED", "BONUS_VALID", "DESIGN_CHOICE"),
    )
    # the first is valid, though of which class they do not agree; the second is hallucinated by two of three
    assert (row["total_findings"], row["valid_findings"], row["undecided_findings"]) == (3, 1, 0)
    assert (row["bonus_valid_findings"], row["partial_match_findings"]) == (0, 0)
    assert (row["hallucinated_findings"], row["design_choice_findings"]) == (1, 1)
    assert row["finding_precision"] == pytest.approx(1 / 3)


def test_a_finding_on_which_judges_are_split_leaves_the_denominators_and_is_counted() -> None:
    row = panel(classed("BONUS_VALID", "HALLUCINATED"), classed("HALLUCINATED", "HALLUCINATED"))
    assert (row["total_findings"], row["hallucinated_findings"], row["undecided_findings"]) == (1, 1, 1)
    assert row["finding_precision"] == 0


def test_without_numbers_findings_are_one_by_place_and_type() -> None:
    here = {"location_claimed": "Box.withdraw, line 8", "vulnerability_type_claimed": "reentrancy"}
    near = {"location_claimed": "function withdraw()", "vulnerability_type_claimed": "Reentrancy"}
    else_where = {"location_claimed": "deposit()", "vulnerability_type_claimed": "reentrancy"}
    row = panel(
        judgement([finding(4, "BONUS_VALID", **here)], target(False)),
        judgement([finding(1, "BONUS_VALID", **else_where), finding(2, "INFORMATIONAL", **near)], target(False)),
        judgement([finding(9, "BONUS_VALID", **near)], target(False)),
        prompt_type="naturalistic",
    )
    assert (row["total_findings"], row["valid_findings"], row["invalid_findings"]) == (2, 2, 0)


def test_a_panels_findings_land_with_what_most_judges_said_and_keep_their_contract() -> None:
    lines = [line(0, judged=said(True), judge=judge) for judge in JUDGES]
    derived = derived_of(lines)
    (row,) = derived.rows[RESULTS.table]
    assert (row["type_match"], row["target_match_id"], row["target_credit"]) == ("exact", 1, 1.0)
    (found,) = derived.rows[FINDINGS.table]
    assert (found["judge"], found["classification"]) == ("panel:a+b+c", "TARGET_MATCH")
    rows = conform([{**found, "landed_by_run": "r", "origin": "import"}], FINDINGS)
    assert audit(rows, FINDINGS).bad.is_empty()


# Judge bias: the departure of a judge from the others, and what it goes with.


def seen(found: bool, *classes: str) -> dict[str, Any]:
    findings = [finding(number, name) for number, name in enumerate(classes, 1)]
    return judgement(findings or ([finding()] if found else []), target(found))


def bias(frame: pl.DataFrame, metric: str) -> dict[str, tuple[float | None, int]]:
    """The metric's value and n by judge; every model has the same."""
    rows = judge_bias(frame).filter(metric=metric)
    by_judge = {judge: (value, n) for judge, value, n in rows.select("judge", "value", "n").iter_rows()}
    assert rows.select("judge", "value", "n").n_unique() == len(by_judge)
    return by_judge


@pytest.mark.parametrize(("model", "expected"), CASES["families"])
def test_the_family_follows_from_the_name(model: str, expected: str | None) -> None:
    assert family(model) == expected


def test_a_judge_that_favours_its_own_family_departs_for_it() -> None:
    words = {  # model -> judge -> whether each of four targets was found
        "openai/gpt-4o": {"openai/o3": "1111", "xai/grok-4": "1100", "gemini/gemini-3": "1100"},
        "anthropic/claude-4": {"openai/o3": "1100", "xai/grok-4": "1100", "gemini/gemini-3": "1100"},
    }
    lines = [
        line(n, judged=seen(word == "1"), judge=judge, model=model)
        for model, judges in words.items()
        for judge, row in judges.items()
        for n, word in enumerate(row)
    ]
    values = bias(frame_of(lines), "judge_bias_own_family")
    assert values["openai/o3"] == (pytest.approx(0.5), 8)
    assert "xai/grok-4" not in values  # it judges no model of its own family
    assert {*judge_bias(frame_of(lines))["model"]} == set(words)


def test_a_judge_that_believes_the_long_departs_with_length() -> None:
    rng = np.random.default_rng(5)
    tokens = rng.integers(50, 5000, 60)
    fair = rng.random((2, 60)) < 0.5
    fond = tokens > 1500
    lines = [
        line(n, judged=seen(bool(word)), judge=judge)
        for judge, row in (("a", fair[0]), ("b", fair[1]), ("fond", fond))
        for n, word in enumerate(row)
    ]
    lengths = pl.DataFrame({"sample_id": [f"s{n}" for n in range(60)], "output_tokens": tokens})
    frame = frame_of(lines).drop("output_tokens").join(lengths, on="sample_id", how="left")
    values = bias(frame, "judge_bias_verbosity")
    expected = pearsonr(fond - fair.mean(axis=0), np.log(tokens)).statistic
    assert values["fond"] == (pytest.approx(expected), 60)
    assert expected > 0.3 > abs(values["a"][0] or 1)


def test_a_judge_that_believes_the_first_finding_departs_for_it() -> None:
    valid, invalid = "BONUS_VALID", "HALLUCINATED"
    lines = []
    for n in range(6):
        lines.append(line(n, judged=seen(False, valid, invalid, invalid), judge="first"))
        lines.append(line(n, judged=seen(False, invalid, invalid, valid), judge="fair"))
    values = bias(frame_of(lines), "judge_bias_position")
    assert values["first"] == (pytest.approx(1.5), 18)
    assert values["fair"] == (pytest.approx(-1.5), 18)


def test_without_other_judges_there_is_nothing_to_depart_from() -> None:
    alone = frame_of([line(n, judged=seen(True)) for n in range(4)])
    assert judge_bias(alone).is_empty()
    failed = [line(n, judged=None, judge="b") for n in range(4)]
    assert judge_bias(frame_of([line(n, judged=seen(True), judge="a") for n in range(4)] + failed)).is_empty()


@pytest.mark.slow
def test_a_judge_without_bias_is_rarely_said_to_have_one() -> None:
    rng = np.random.default_rng(8)
    judges, families = ("openai/o3", "xai/grok-4", "mistral/mistral-large"), ("openai/gpt-4o", "anthropic/claude-4")
    rows = list(product(judges, families, range(40)))
    missed, found = (
        frame_of([line(n, judged=seen(word), judge=judge, model=model) for judge, model, n in rows])
        for word in (False, True)
    )
    outside = 0
    for _ in range(30):
        truth = rng.random((2, 40)) < 0.6
        words = np.tile(truth.ravel(), len(judges)) ^ (rng.random(len(rows)) < 0.15)
        frame = pl.concat([missed.filter(~words), found.filter(words)])
        biases = judge_bias(frame).filter(metric="judge_bias_own_family", judge="openai/o3")
        low, high = biases.select("ci_low", "ci_high").row(0)
        outside += not low <= 0 <= high
    assert outside <= 5  # of 30: 1.5 expected at 95 %
