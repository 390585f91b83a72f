"""Places beside the lake that may hold what is forgotten are named."""

from pathlib import Path

import pytest

from evalake.admin.forget import ALWAYS, choose, places, runs_of
from evalake.suites.registry import all_contracts
from evalake.tasks.runtime.context import RunContext


def test_a_backup_and_reports_that_are_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "reports"))
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PREFECT_LOCAL_STORAGE_PATH", raising=False)
    monkeypatch.delenv("EVALAKE_BACKUP", raising=False)
    assert places(["run-1"]) == [ALWAYS]
    monkeypatch.setenv("EVALAKE_BACKUP", "s3://backup/lake")
    (tmp_path / "reports" / "run-1").mkdir(parents=True)
    (tmp_path / "home" / "storage").mkdir(parents=True)
    backup, report, results, always = places(["run-1", "run-2"])
    assert "s3://backup/lake" in backup
    assert str(tmp_path / "reports" / "run-1") in report
    assert str(tmp_path / "home" / "storage") in results
    assert always == ALWAYS


def test_runs_are_those_that_have_the_sample(guard: RunContext, audits: RunContext) -> None:
    (sample,) = guard.lake.frame(guard.suite.results).filter(sample_id="s39").collect()["sample_hash"].unique()
    found = runs_of(guard.lake, all_contracts(), choose(guard.lake, sample, None, None).hashes)
    assert guard.run_id in found
    assert audits.run_id not in found
