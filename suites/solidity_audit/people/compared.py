"""What judges and experts decided about the same audits, side by side: one row for each decision that both took."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from contracts.tables.human_labels import HUMAN_LABELS, YES
from metrics.decision_agreement import WEIGHED_PAIRS
from suites.base.drawing import represented
from suites.base.labelling import ANSWER
from suites.solidity_audit.contract import FINDINGS, JUDGED_KEY, RESULTS
from suites.solidity_audit.panels.rows import PREFIX
from suites.solidity_audit.taxonomy import VALID
from suites.solidity_audit.truth import SUITE

DECISIONS = (
    *("verdict", "target found", "type match", "location", "reasoning"),
    *("root cause", "attack vector", "fix", "finding class", "finding valid"),
)

NEAR = 0.25
"""Scores this close are one level of the rubric apart, and agree."""

ACCURATE_FROM, PARTIAL_FROM = 0.75, 0.4
"""The means of the three scores from which reasoning counts as accurate, or as partly so."""

SCORES = {"root_cause_score": ("rcir", "root cause"), "attack_vector_score": ("ava", "attack vector")}
SCORES |= {"fix_score": ("fsv", "fix")}


def compare_with_people(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Pair the answers of a run's judges with all annotators', the judge's first, in the columns of WEIGHED_PAIRS."""
    results, findings, labels = (tables[contract.table] for contract in (RESULTS, FINDINGS, HUMAN_LABELS))
    judged = results.filter(pl.col("judge_error").is_null(), ~pl.col("judge").str.starts_with(PREFIX))
    answer = list(ANSWER)
    ours = labels.filter(pl.col("suite") == SUITE).join(judged.select(answer).unique(), on=answer, how="semi")
    labels = ours.join(represented(ours.lazy(), answer).collect(), on=answer)
    on_audits = labels.filter(pl.col("finding_id").is_null()).join(judged, on=answer, suffix=" judged")
    answers = labels.filter(pl.col("finding_id").is_not_null()).select(
        *answer, "judge", "finding_id", "question", "answer", "human_weight"
    )
    of_judgement = [name for name in JUDGED_KEY if name not in (*answer, "judge")]
    shown = judged.select(*answer, "judge", *of_judgement, "cluster")
    on_findings = answers.join(shown, on=[*answer, "judge"]).join(
        findings.select(*JUDGED_KEY, "finding_id", "classification"), on=[*JUDGED_KEY, "finding_id"]
    )
    rows = [pair for row in on_audits.iter_rows(named=True) for pair in _on_audit(row)]
    rows += [pair for row in on_findings.iter_rows(named=True) for pair in _on_finding(row)]
    return pl.DataFrame(rows, schema=WEIGHED_PAIRS, orient="row")


_Pair = tuple[str, str, str, str | None, str | None, bool, float, float | None, float | None]


def _on_audit(row: Mapping[str, Any]) -> Iterator[_Pair]:
    judge, cluster, question = row["judge judged"], row["cluster"], row["question"]
    if question in SCORES:
        column, decision = SCORES[question]
        if row[column] is not None:
            near = abs(row[column] - row["score"]) <= NEAR
            yield judge, decision, cluster, None, None, near, row["human_weight"], row[column], row["score"]
        return
    decided = _DECIDED.get(question)
    if decided is not None:
        decision, ours = decided
        if (word := ours(row)) is not None:
            agrees = word == row["answer"]
            yield judge, decision, cluster, word, row["answer"], agrees, row["human_weight"], None, None


def _on_finding(row: Mapping[str, Any]) -> Iterator[_Pair]:
    judge, cluster, ours, theirs = row["judge"], row["cluster"], row["classification"], row["answer"]
    if row["question"] == "classification":
        more = row["human_weight"], None, None
        yield judge, "finding class", cluster, ours, theirs, ours == theirs, *more
        valid, truly = _yes(ours in VALID), _yes(theirs in VALID)
        yield judge, "finding valid", cluster, valid, truly, valid == truly, *more


def _yes(value: bool | None) -> str | None:
    return None if value is None else YES if value else "no"


def _verdict(row: Mapping[str, Any]) -> str | None:
    verdict = row["said_vulnerable"]
    return None if verdict is None else "vulnerable" if verdict else "safe"


def _type(row: Mapping[str, Any]) -> str | None:
    return None if row["type_match"] is None else _yes(row["type_match"] in ("exact", "semantic"))


def _reasoning(row: Mapping[str, Any]) -> str | None:
    scores = [row[name] for name in ("rcir", "ava", "fsv") if row[name] is not None]
    if row["target_found"] is None or (row["target_found"] and not scores):
        return None
    mean = sum(scores) / len(scores) if scores else 0.0
    return "accurate" if mean >= ACCURATE_FROM else "partial" if mean >= PARTIAL_FROM else "incorrect"


def _location(row: Mapping[str, Any]) -> str | None:
    """Read the judge's answer on the location: "no" where the target was not found, None where unknown."""
    return "no" if row["target_found"] is False else _yes(row["location_function_hit"])


_DECIDED: Mapping[str, Any] = {
    "verdict": ("verdict", _verdict),
    "target_found": ("target found", lambda row: _yes(row["target_found"])),
    "type_correct": ("type match", _type),
    "location_correct": ("location", _location),
    "reasoning_quality": ("reasoning", _reasoning),
}
"""By the question that people answered: the decision, and how to read the judge's answer on it."""
