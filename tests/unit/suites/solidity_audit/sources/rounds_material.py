"""A small recorded round: a judgement, its truth and a review of it, in the field names of a recorded round."""

import json
from pathlib import Path
from typing import Any

from evalake.admin.import_results import import_recorded
from evalake.sdk import RecordedFolder
from evalake.storage.lake import Lake
from evalake.suites.solidity_audit.sources.rounds import read_folder
from evalake.suites.solidity_audit.suite import SUITE
from tests.cases import cases_beside

CLAIMS: dict[int, str] = dict(enumerate(cases_beside(__file__, "round.json")["claims"], start=1))
TRUTH: dict[str, Any] = cases_beside(__file__, "round.json")["truth"]


def judgement(**more: Any) -> dict[str, Any]:
    """A judgement in the field names of a recorded round."""
    return {**cases_beside(__file__, "round.json")["judgement"], **more}


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
