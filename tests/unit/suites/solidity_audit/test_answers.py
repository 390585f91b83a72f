"""Answers and rows of audits: contracts, mistakes, viewing and warnings."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.contracts.audit import audit
from evalake.contracts.tables import SAMPLES
from evalake.models.request import Reply
from evalake.sdk import Dataset, Exchange
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.cross_row_metrics import warnings
from evalake.suites.solidity_audit.prompts import converse
from evalake.suites.solidity_audit.recorded import read_recorded
from evalake.suites.solidity_audit.score import MISTAKE, add_columns, score
from evalake.suites.solidity_audit.suite import VIEWING
from evalake.tasks.extract import sample_rows
from tests.cases import cases_beside
from tests.unit.suites.solidity_audit.judgements import CONTRADICTIONS, GOOD
from tests.unit.suites.solidity_audit.panels.material import by_dawid_skene, derived_of, said, told, with_panel
from tests.unit.suites.solidity_audit.support import (
    SAFE,
    conversation,
    finding,
    found,
    frame_of,
    judgement,
    landed,
    line,
    missed,
    rows_of,
    target,
)

CASES = cases_beside(__file__, "answers.json")

# The contract refuses a row that contradicts itself, by the rule that says how, and no good one.


@pytest.mark.parametrize("rule", CONTRADICTIONS)
def test_each_contradiction_breaks_the_rule_that_names_it(rule: str) -> None:
    results, findings = rows_of([line(judged=CONTRADICTIONS[rule])])
    audited = audit(results, RESULTS)
    assert audited.good.is_empty()
    assert rule in audited.bad["broken"][0]
    assert set(audited.bad["broken"][0]) <= {rule, "calibration_error_is_share"}
    assert findings.is_empty(), "the findings of a refused judgement must not land either"


def broken(**columns: Any) -> list[str]:
    """The rules that a good row breaks when these columns are otherwise."""
    results, _ = rows_of([line(judged=GOOD)])
    changed = results.with_columns(pl.lit(value, results.schema[name]).alias(name) for name, value in columns.items())
    return [rule for rules in audit(changed, RESULTS).bad["broken"] for rule in rules]


@pytest.mark.parametrize(("columns", "rule"), CASES["refused"])
def test_a_row_that_cannot_be_is_refused_by_the_rule_that_says_why(columns: dict[str, Any], rule: str) -> None:
    assert broken(**columns) == [rule]


def test_what_nobody_can_be_asked_about_any_more_is_kept() -> None:
    """A recorded judgement lands with its further contradictions; what is unknown is null and breaks nothing."""
    assert broken(contradictions="found is true, but …", origin="import") == []
    assert broken(severity=None, vulnerability_type=None, confidence=None, cost_usd=None) == []


def test_a_verdict_stands_for_a_call_given_up_on_until_a_reply_comes(tmp_path: Path) -> None:
    first, _ = rows_of([line(judged=found())])
    given_up = first.with_columns(judge_error=pl.lit("timeout"), judgement_hash=pl.lit(None, pl.String))
    another = first.with_columns(rcir=pl.lit(0.25))
    lake = Lake(str(tmp_path / "lake"))
    for rows, error in ((given_up, "timeout"), (first, None), (given_up, None), (another, None)):
        land(lake, RESULTS, rows)
        assert lake.frame(RESULTS).collect().select("judge_error", "rcir").rows() == [(error, 1.0)]


def test_a_finding_is_one_of_its_judgement() -> None:
    judged = judgement([finding(), finding(2, "HALLUCINATED")], target())
    _, findings = rows_of([line(judged=judged, judge=judge) for judge in "ab"])
    assert findings.select(FINDINGS.key).is_unique().all()
    assert findings.height == 4
    assert audit(findings.with_columns(judge=pl.lit(" ")), FINDINGS).good.is_empty()


# Mistakes are wrong verdicts, lucky guesses and invented findings, told with the contract and the judge's words.

RIGHT = judgement([finding(reason="the flaw itself")], target())
LUCKY = judgement([finding(1, "MISCHARACTERIZED", reason="the check is there")], target(False))
INVENTED = judgement(
    [finding(1), finding(2, "HALLUCINATED", reason="no such function", location_claimed="burn()")],
    target(type_match_reason="the same name"),
)
MISSED = judgement([], target(False), said=False)


def mistakes_told(*judged: dict[str, Any]) -> list[dict[str, Any]]:
    lines = [line(number, judged=each) for number, each in enumerate(judged)]
    results, findings = rows_of(lines)
    samples = [read_recorded(each).item.sample for each in lines]
    known = sample_rows(Dataset("recorded", tuple(samples)), samples)
    tables = {FINDINGS.table: findings.lazy(), SAMPLES.table: pl.DataFrame(known).lazy()}
    answers = add_columns(results, tables)
    assert {*answers.columns} - {*results.columns} == {"mistake", "contract_excerpt", "judge_words"}
    return answers.sort("sample_id").to_dicts()


def test_a_right_verdict_for_no_right_reason_is_a_mistake_too() -> None:
    rows = mistakes_told(RIGHT, LUCKY, INVENTED, MISSED)
    assert [row["mistake"] for row in rows] == [None, "lucky guess", "invented finding", "wrong verdict"]
    listed = pl.DataFrame(rows, infer_schema_length=None).filter(MISTAKE)["sample_id"].to_list()
    assert listed == ["s1", "s2", "s3"]


def test_the_judges_words_stand_beside_a_mistake() -> None:
    _, lucky, invented, missed = mistakes_told(RIGHT, LUCKY, INVENTED, MISSED)
    assert lucky["judge_words"] == "1. MISCHARACTERIZED: the check is there"
    assert invented["judge_words"].split("\n") == [
        "1. TARGET_MATCH",
        "2. HALLUCINATED (burn()): no such function",
        "the same name",
    ]
    assert missed["judge_words"] is None
    assert missed["contract_excerpt"] is None, "the contract was not recorded"


# How the viewer shows an audit: its verdict, why there is none, and the flags by which audits are chosen.


def shown(rows: pl.DataFrame) -> dict[str, Any]:
    """What the viewer makes of a row, and the names of its flags that are up."""
    verdict, correct, error = VIEWING.verdict, VIEWING.correct, VIEWING.error
    assert verdict is not None
    assert correct is not None
    assert error is not None
    told = rows.select(verdict=verdict, correct=correct, error=error, **VIEWING.flags).row(0, named=True)
    return told | {"flags": {name for name in VIEWING.flags if told[name]}}


@pytest.mark.parametrize(
    ("given", "verdict", "correct", "flags"),
    [
        (line(judged=found()), "vulnerable", True, set()),
        (line(judged=missed(said=False)), "safe", False, {"target_missed"}),
        (line(judged=missed(said=None)), None, False, {"target_missed"}),
        (line(judged=missed(finding(1, "HALLUCINATED"))), "vulnerable", True,
         {"target_missed", "lucky_guess", "hallucinated_findings"}),
        (line(truth=SAFE, judged=judgement(said=True)), "vulnerable", False, {"false_alarm"}),
        (line(truth=SAFE, judged=judgement(said=False)), "safe", True, set()),
        (line(judged=found() | {"findings": [finding(1, is_valid_concern=False)]}), "vulnerable", True,
         {"contradictory_judgement"}),
    ],
)  # fmt: skip
def test_an_audit_is_told_by_its_verdict_and_chosen_by_its_flags(
    given: dict[str, Any], verdict: str | None, correct: bool, flags: set[str]
) -> None:
    told = shown(rows_of([given])[0])
    assert (told["verdict"], told["correct"], told["flags"], told["error"]) == (verdict, correct, flags, None)


def test_where_there_is_no_judgement_the_reason_stands_in_its_place() -> None:
    told = shown(rows_of([line(judge_error="unparseable judgement")])[0])
    assert (told["error"], told["correct"], told["flags"]) == ("unparseable judgement", None, set())
    refused = rows_of([line()])[0].with_columns(subject_error=pl.lit("content_policy"))
    assert shown(refused)["error"] == "content_policy"


def test_a_panel_that_does_not_decide_is_flagged() -> None:
    lines = [line(judged=said(answer), judge=judge) for judge, answer in (("a", True), ("b", False))]
    told = shown(landed(derived_of(lines).rows[RESULTS.table]))
    assert told["flags"] == {"panel_undecided"}


# What a reader must know of a snapshot is said in sentences.


def test_two_judges_who_differ_stay_undecided_and_a_snapshot_says_that_they_are_two() -> None:
    lines = [told(judge, number, found) for number in range(9) for judge, found in (("a", True), ("b", False))]
    rows, frame = by_dawid_skene(lines)
    assert {row["panel_undecided"] for row in rows} == {True}
    assert any("two judges do not tell" in sentence for sentence in warnings(frame))


def test_self_judging_and_a_single_judge_are_said_loudly() -> None:
    said = warnings(frame_of([line(0, judged=found(), judge="subject"), line(1)]))
    assert any("self-judging: subject" in each for each in said)
    assert any("panel of one judge: all judgements are judge's" in each for each in warnings(frame_of([line(1)])))
    assert not any("panel of one" in each for each in said)


TWO_JUDGES = [line(0, judged=found(), judge=judge) for judge in "ab"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ([line(1, judge="b")], "subject by b: 50.0% of the judgements failed; their audits are in no rate"),
        (
            [line(1, judged=judgement([finding(matches_target=False)], target()), judge="b")],
            "b: 1 of 2 imported judgements contradict themselves (column contradictions); they count as they stand",
        ),
        (
            [line(0, judged=found(confidence=None), judge="b", model="other")],
            "other stated no confidence: calibration in its sui is not measured but set by sui_calibration_unstated",
        ),
    ],
)
def test_what_weakens_the_numbers_is_said_once(more: list[dict[str, Any]], sentence: str) -> None:
    assert warnings(frame_of([*TWO_JUDGES, *more])) == [sentence]


def test_what_a_panel_left_open_is_counted() -> None:
    lines = [*TWO_JUDGES, line(1, judged=found(), judge="a"), line(1, judged=missed(), judge="b")]
    assert warnings(with_panel(lines)) == [
        "subject by panel:a+b: undecided on 50.0% of the audits, which are in no rate"
    ]


def test_a_rare_failure_is_no_news() -> None:
    lines = [line(number, judged=found(), judge=judge) for number in range(19) for judge in "ab"]
    assert warnings(frame_of([*lines, line(19, judge="a"), line(19, judged=found(), judge="b")])) == []


def test_a_consensus_of_few_audits_is_said_to_be_too_few_and_of_many_is_not() -> None:
    def said(audits: int) -> list[str]:
        lines = [
            told(judge, number, bool((number + place) % 5))
            for number in range(audits)
            for place, judge in enumerate("abc")
        ]
        return [each for each in warnings(by_dawid_skene(lines)[1]) if "Dawid" in each]

    (few,) = said(30)
    assert "30 audits are too few" in few
    assert said(120) == []


# The conversation about an audit: the judge may repair its judgement once, and is asked of nothing that failed.


@pytest.mark.parametrize("rule", CONTRADICTIONS)
def test_a_judge_is_shown_its_contradiction_once(rule: str) -> None:
    item, answered = conversation([CONTRADICTIONS[rule]])
    repair = converse(item, answered, {})
    assert repair is not None
    assert repair.model == "a/judge"
    assert repair.messages[-2]["role"] == "assistant"
    assert "cannot be used" in repair.messages[-1]["content"]
    answered.append(Exchange("f" * 64, Reply(json.dumps(GOOD))))
    assert converse(item, answered, {}) is None
    (row,) = score(item, answered, {})[RESULTS.table]
    assert row["target_found"] is True
    assert row["repaired"] is True
    assert row["judge_hash"] == answered[1].prompt_hash
