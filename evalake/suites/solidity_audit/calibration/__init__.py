"""Calibration: audits with known right judgements, put to a judge, and its judgements compared with the known ones."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evalake.core.hashing import content_hash
from evalake.metrics.agreement import PAIRS
from evalake.models.request import Reply
from evalake.sdk import Calibration, Exchange, Item
from evalake.suites.solidity_audit.replies import Judgement, contradictions, names_function, read_judgement
from evalake.suites.solidity_audit.score import asked
from evalake.suites.solidity_audit.sources.read import STARTER, read_contract
from evalake.suites.solidity_audit.truth import BONUS, PROMPT_TYPES, SCORES, GroundTruth, as_sample, truth_of

FILE = Path(__file__).parent / "audits.jsonl"
DATASET, SUBJECT = "calibration", "calibration"
PROMPT_TYPE = PROMPT_TYPES[1]  # the audits are prose, so the judge is asked for the verdict, too

DECISIONS = (
    *("verdict", "confidence", "target found", "finding class", "type match"),
    *("root cause", "attack vector", "fix", "location", "bonus"),
)
NEAR = 0.25
"""Scores this close are one level of the rubric apart, and count as right."""

SAME_CONFIDENCE = 0.005

_SCORES = dict(zip(("root cause", "attack vector", "fix"), SCORES.values(), strict=True))

_Decided = tuple[str, str | None, str | None, bool]


def read_audits() -> list[dict[str, Any]]:
    """Read the audits that ship with the suite, with their known judgements."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def contract_of(audit: dict[str, Any]) -> str:
    """Build the source of the audited contract: its pair's twin, with the code that was added for this audit."""
    source = read_contract(STARTER / audit["pair"], audit["twin"])
    assert source is not None
    body, _, rest = source.text.rpartition("}")
    return f"{body}{audit['added']}}}{rest}" if "added" in audit else source.text


def items(judge: str) -> list[tuple[Item, list[Exchange]]]:
    """Build an item for this judge from every audit, with the audit as the subject's reply."""
    return [
        (_item(audit, judge), [Exchange(content_hash([audit["audit"]]), Reply(audit["audit"]), from_ledger=True)])
        for audit in read_audits()
    ]


def _item(audit: dict[str, Any], judge: str) -> Item:
    stated = json.loads((STARTER / audit["pair"] / "ground_truth.json").read_text(encoding="utf-8"))
    known = {
        name: value for name, value in stated.items() if name not in ("pair_id", "description", "vulnerable_lines")
    }
    truth = GroundTruth(**{"is_vulnerable": True, **known})
    if audit["twin"] == "patched":
        truth = GroundTruth(is_vulnerable=False)
    sample = as_sample(DATASET, audit["id"], contract_of(audit), truth, cluster=audit["pair"], note=None)
    return Item(sample, SUBJECT, judge, PROMPT_TYPE)


def compare(judged: Sequence[tuple[Item, Sequence[Exchange]]]) -> pl.DataFrame:
    """Pair known and judged decisions of every audit, known first; an unusable judgement has all of them wrong."""
    known = {audit["id"]: audit for audit in read_audits()}
    rows = []
    for item, answered in judged:
        audit, outcome = known[item.sample.sample_id], answered[-1].outcome
        text = outcome.text if isinstance(outcome, Reply) and len(answered) > 1 else None
        reading = read_judgement(text, asked(item.sample, item.prompt_type)).judgement
        given = None if reading is None or contradictions(reading) else reading
        right = Judgement.model_validate(audit["judgement"])
        for decision, first, second, agrees in _decisions(item, audit["audit"], right, given):
            rows.append((item.judge, decision, audit["pair"], first, second, agrees))
    return pl.DataFrame(rows, schema=PAIRS, orient="row")


def _decisions(item: Item, audit: str, right: Judgement, given: Judgement | None) -> Iterator[_Decided]:
    known, verdict = right.overall_verdict, None if given is None else given.overall_verdict
    assert known is not None
    yield _same("verdict", str(known.said_vulnerable), None if verdict is None else str(verdict.said_vulnerable))
    near = verdict is not None and _near(known.confidence_expressed, verdict.confidence_expressed, SAME_CONFIDENCE)
    yield "confidence", None, None, near
    classes = {} if given is None else {finding.finding_id: finding.classification for finding in given.findings}
    for finding in right.findings:
        yield _same("finding class", finding.classification, classes.get(finding.finding_id))
    expected = any(finding.classification == BONUS for finding in right.findings)
    yield _same("bonus", str(expected), None if given is None else str(BONUS in classes.values()))
    if right.target_assessment is not None:
        yield from _of_target(item, audit, right, given)


def _of_target(item: Item, audit: str, right: Judgement, given: Judgement | None) -> Iterator[_Decided]:
    target, theirs = right.target_assessment, None if given is None else given.target_assessment
    assert target is not None
    yield _same("target found", str(target.found), None if theirs is None else str(theirs.found))
    yield _same("type match", str(target.type_match), None if theirs is None else str(theirs.type_match))
    if not target.found:
        return
    for decision, name in _SCORES.items():
        score, own = getattr(target, name), None if theirs is None else getattr(theirs, name)
        yield decision, None, None, own is not None and _near(score.score, own.score, NEAR)
    functions = truth_of(item.sample).vulnerable_functions
    line = next(line for line in audit.splitlines() if line.startswith(f"{target.finding_id}."))
    placed = [] if given is None or theirs is None else [f for f in given.findings if f.finding_id == theirs.finding_id]
    claimed = any(names_function(f.location_claimed or "", functions) for f in placed)
    yield _same("location", str(names_function(line, functions)), str(claimed) if placed else None)


def _same(decision: str, first: str, second: str | None) -> _Decided:
    return decision, first, second, first == second


def _near(first: float | None, second: float | None, distance: float) -> bool:
    return first == second if first is None or second is None else abs(first - second) <= distance + 1e-9


CALIBRATION = Calibration(items, compare, DECISIONS)
