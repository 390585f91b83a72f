"""A small recorded round: a judgement, its truth and a review of it, in the field names of a recorded round."""

import json
from pathlib import Path
from typing import Any

from evalake.admin.import_results import import_recorded
from evalake.sdk import RecordedFolder
from evalake.storage.lake import Lake
from evalake.suites.solidity_audit.sources.rounds import read_folder
from evalake.suites.solidity_audit.suite import SUITE

CLAIMS = {
    1: "withdraw() sends ether before it writes the balance, so the balance can be paid out twice.",
    2: "The owner may change the fee at any time and without any announcement to the members.",
}


def judgement(**more: Any) -> dict[str, Any]:
    """A judgement in the field names of a recorded round."""
    classes = {1: "TARGET_MATCH", 2: "DESIGN_CHOICE"}
    score = {"score": 0.75, "reasoning": "It names the statement."}
    return {
        "sample_id": "box",
        "transformed_id": "nc_box",
        "prompt_type": "direct",
        "judge_model": "Judge 3",
        "overall_verdict": {"said_vulnerable": True, "confidence_expressed": 0.9},
        "findings": [
            {
                "finding_id": number,
                "description": text,
                "classification": classes[number],
                "matches_target": number == 1,
                "is_valid_concern": number == 1,
                "reasoning": "As the code says.",
                "surprise": 1,
            }
            for number, text in CLAIMS.items()
        ],
        "target_assessment": {
            "found": True,
            "finding_id": 1,
            "type_match": "exact",
            "type_match_reasoning": "The very word.",
            "root_cause_identification": score,
            "attack_vector_validity": score,
            "fix_suggestion_validity": None,
        },
        "summary": {"total_findings": 2},
        "notes": "Careful work.",
        "judge_latency_ms": 12.5,
        "judge_cost_usd": 0.002,
        **more,
    }


TRUTH: dict[str, Any] = {
    "id": "nc_box",
    "ground_truth": {
        "is_vulnerable": True,
        "vulnerability_type": "reentrancy",
        "severity": "high",
        "vulnerable_location": {"function_name": "withdraw", "line_numbers": []},
    },
    "difficulty_fields": {"difficulty_tier": 2},
    "original_id": "box",
}


def review(*findings: dict[str, Any], **target: Any) -> dict[str, Any]:
    return {
        "evaluation_info": {"sample_id": "box", "evaluator": "ann", "date": "2025-12-18"},
        "target_assessment": {
            "found": True,
            "classification": "FOUND",
            "type_correct": True,
            "notes": "[ok]",
            **target,
        },
        "other_findings": list(findings),
    }


def write(folder: Path, files: dict[str, Any]) -> Path:
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return folder


ROUND = {
    "deep/judges/some_model_1.5/judge_outputs/j_nc_box_direct.json": judgement(),
    "samples/ground_truth/nc_box.json": TRUTH,
}


def imported(tmp_path: Path, files: dict[str, Any]) -> tuple[Lake, str]:
    lake = Lake(str(tmp_path / "lake"))
    return lake, import_recorded(lake, SUITE, [write(tmp_path / "round", files)])


def read(tmp_path: Path, files: dict[str, Any]) -> RecordedFolder:
    folder = read_folder(write(tmp_path / "round", files))
    assert folder is not None
    return folder


def reasons(folder: RecordedFolder) -> dict[str, str]:
    """Why what was left out, by the name of the file."""
    return {out.where.rpartition("/")[2]: out.reason for out in folder.skipped}
