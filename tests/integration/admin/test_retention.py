"""Reports that are older than the policy allows go, and nothing beside them; the flow's tests have the server."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evalake.admin.maintain import remove_expired
from evalake.core.configuration import Retention
from evalake.reports.page import DATA, PAGE


def test_an_old_report_goes_with_its_folder_unless_something_else_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path))
    old = (datetime.now(UTC) - timedelta(days=40)).timestamp()
    for name, age in (("old", old), ("noted", old), ("young", None)):
        (tmp_path / name).mkdir()
        for file in (tmp_path / name / PAGE, tmp_path / name / DATA):
            file.touch()
            if age is not None:
                os.utime(file, (age, age))
    (tmp_path / "noted" / "notes.txt").touch()
    policy = Retention(reports_days=30, results_days=None, flow_runs_days=None)
    (planned,) = remove_expired(policy, dry_run=True)
    assert planned.removed == 2
    assert (tmp_path / "old" / PAGE).exists()
    assert remove_expired(policy) == [planned]
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")) == sorted(
        ["noted/notes.txt", f"young/{PAGE}", f"young/{DATA}"]
    )
