"""Links out of a dataset reach no sample, whichever suite reads it; the rest of the dataset goes on."""

import json
import os
import shutil
from pathlib import Path

import pytest

from evalake.suites.registry import suite
from evalake.suites.session_review.sources.read import STARTER as SESSIONS
from evalake.suites.solidity_audit.sources.read import STARTER

KEY = "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXktdjEAAAAA"


def gtfobins(folder: Path, outside: Path) -> None:
    (folder / "_gtfobins").mkdir()
    (folder / "_gtfobins" / "good.md").write_text("---\nfunctions:\n  shell:\n  - code: good /bin/sh\n---\n")
    outside.write_text(f"---\nfunctions:\n  shell:\n  - code: {KEY}\n---\n")
    (folder / "_gtfobins" / "evil.md").symlink_to(outside)
    os.mkfifo(folder / "_gtfobins" / "pipe.md")


def pairs(folder: Path, outside: Path) -> None:
    shutil.copytree(STARTER / "pair_01", folder / "good")
    shutil.copytree(STARTER / "pair_02", folder / "evil")
    outside.write_text(f"contract Key {{ /* {KEY} */ }}")
    (folder / "evil" / "vulnerable.sol").unlink()
    (folder / "evil" / "vulnerable.sol").symlink_to(outside)


def sessions(folder: Path, outside: Path) -> None:
    body = sorted(SESSIONS.glob("*.json"))[0].read_text()
    (folder / "good.json").write_text(body)
    outside.write_text(json.dumps({**json.loads(body), "session_id": KEY}))
    (folder / "evil.json").symlink_to(outside)
    os.mkfifo(folder / "pipe.json")


@pytest.mark.parametrize(
    ("name", "make"), [("command_guard", gtfobins), ("solidity_audit", pairs), ("session_review", sessions)]
)
def test_a_link_out_of_a_dataset_is_left_out_counted_and_named(tmp_path: Path, name: str, make: object) -> None:
    (folder := tmp_path / "dataset").mkdir()
    make(folder, tmp_path / "outside")  # type: ignore[operator]
    dataset = suite(name).data.read(str(folder))
    assert dataset.samples
    assert KEY not in repr(dataset)
    reasons = {left.where: left.reason for left in dataset.skipped if "evil" in left.where}
    assert list(reasons.values()) == ["link that leads out of the dataset"]
