"""Short cuts of this folder: contracts, judgements, items and result frames with little to write."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.metrics.compute import measure
from evalake.models.request import Reply
from evalake.sdk import Exchange, Item, Sample
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.metrics import metrics
from evalake.suites.solidity_audit.people import join_inputs
from evalake.suites.solidity_audit.recorded import read_recorded
from evalake.suites.solidity_audit.score import score
from evalake.suites.solidity_audit.truth import DEFAULTS, GroundTruth, as_sample

CONTRACT = """pragma solidity ^0.8.20;

contract Box {
    mapping(address => uint256) public balances;

    function withdraw(uint256 amount) external {
        require(balances[msg.sender] >= amount);
        (bool ok, ) = msg.sender.call{value: amount}("");
        require(ok);
        balances[msg.sender] -= amount;
    }
}
"""
TRUTH = GroundTruth(
    is_vulnerable=True,
    vulnerability_type="reentrancy",
    severity="high",
    vulnerable_functions=["withdraw"],
    vulnerable_lines=[8, 10],
    difficulty_tier=1,
    root_cause="The balance is written after the call.",
    attack_scenario="The receiver calls withdraw again.",
    fix="Write the balance first.",
)
SAFE = GroundTruth(is_vulnerable=False, difficulty_tier=1)


def sample(truth: GroundTruth = TRUTH, name: str = "box", contract: str = CONTRACT) -> Sample:
    return as_sample("tests", name, contract, truth, cluster=name, note=None)


def finding(number: int = 1, classification: str = "TARGET_MATCH", **more: Any) -> dict[str, Any]:
    return {"finding_id": number, "classification": classification, **more}


def target(found: bool = True, number: int | None = 1, share: float | None = 1.0, **more: Any) -> dict[str, Any]:
    score = None if share is None or not found else {"score": share}
    return {
        "found": found,
        "finding_id": number if found else None,
        "type_match": "exact" if found else "not_mentioned",
        "root_cause_identification": score,
        "attack_vector_validity": score,
        "fix_suggestion_validity": score,
        **more,
    }


def judgement(
    findings: Sequence[dict[str, Any]] = (),
    assessed: dict[str, Any] | None = None,
    said: bool | None = True,
    confidence: float | None = 0.9,
) -> dict[str, Any]:
    return {
        "overall_verdict": {"said_vulnerable": said, "confidence_expressed": confidence},
        "findings": list(findings),
        "target_assessment": assessed,
    }


def found(share: float = 1.0, extra: int = 0, **more: Any) -> dict[str, Any]:
    """A judgement of an audit that found the target, with some hallucinations beside it."""
    wrong = [finding(number + 2, "HALLUCINATED") for number in range(extra)]
    return judgement([finding(1), *wrong], target(share=share), **more)


def missed(*findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    return judgement(findings, target(found=False), **more)


def line(
    number: int = 0, truth: GroundTruth = TRUTH, judged: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    """A line of recorded results."""
    return {
        "suite": "solidity_audit",
        "sample_id": f"s{number}",
        "model": "subject",
        "judge": "judge",
        "prompt_type": "direct",
        "replicate": 0,
        "ground_truth": truth.model_dump(exclude={"root_cause", "attack_scenario", "fix"}),
        "prediction": None,
        "judgement": judged,
        "judge_error": None if judged else "unparseable judgement",
        **more,
    }


def landed(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Result rows as a table holds them."""
    return conform([{**row, "landed_by_run": "r", "origin": "import"} for row in rows], RESULTS)


def rows_of(lines: Sequence[dict[str, Any]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The results and findings that lines of recorded results come to."""
    results: list[Mapping[str, Any]] = []
    findings: list[dict[str, Any]] = []
    for each in lines:
        recorded = read_recorded(each)
        pairs = zip(recorded.prompt_hashes, recorded.replies, strict=True)
        rows = score(recorded.item, [Exchange(h, reply) for h, reply in pairs], DEFAULTS)
        results += rows[RESULTS.table]
        findings += [{**row, "landed_by_run": "r", "origin": "import"} for row in rows.get(FINDINGS.table, ())]
    return landed(results), conform(findings, FINDINGS)


def frame_of(lines: Sequence[dict[str, Any]], labels: pl.DataFrame | None = None) -> pl.DataFrame:
    """What the metrics read."""
    results, findings = rows_of(lines)
    people = conform([], HUMAN_LABELS) if labels is None else labels
    inputs = {FINDINGS.table: findings.lazy(), HUMAN_LABELS.table: people.lazy()}
    return join_inputs(results.lazy(), inputs).collect()


def values_of(frame: pl.DataFrame, *names: str, options: Any = DEFAULTS) -> dict[str, dict[str, Any]]:
    """The metrics of a frame of one model and judge, by name, over all rows; without names all of them."""
    declared = [replace(metric, slices=("all",)) for metric in metrics(options) if metric.name in names or not names]
    measured = measure(frame, declared, cluster="cluster")
    return {row["metric"]: row for row in measured.iter_rows(named=True)}


def conversation(judge_replies: Sequence[Any], audit: str | None = "{}", **item: Any) -> tuple[Item, list[Exchange]]:
    """An item and its answers: the audit, then each of the judge's replies (as JSON unless text)."""
    about = Item(
        item.pop("sample", sample()), "subject/model", "a/judge", item.pop("prompt_type", "naturalistic"), **item
    )
    texts = [audit, *(each if isinstance(each, str) or each is None else json.dumps(each) for each in judge_replies)]
    return about, [Exchange(f"{number:064x}", Reply(text)) for number, text in enumerate(texts)]
