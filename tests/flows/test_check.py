"""The flow `check`: completes, completes with a warning, or fails; its artifact says why."""

import json
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from contracts.tables import SAMPLES
from flows.check import CheckError, check
from storage.lake import Lake
from suites.registry import suite
from tasks.jobs.import_results import import_recorded
from tests.cli.command import recorded
from tests.storage.foreign_snapshot import foreign_snapshot


def artifact() -> tuple[str, list[dict[str, str]]]:
    """What the newest artifact of the check says, and its rows."""
    with get_client(sync_client=True) as client:
        key = ArtifactFilter(key=ArtifactFilterKey(any_=["check"]))
        newest = max(client.read_artifacts(artifact_filter=key), key=lambda found: str(found.created))
    return newest.description or "", json.loads(str(newest.data))


def test_a_snapshot_that_was_not_recomputed_is_a_warning_of_a_completed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results.jsonl").write_text("\n".join(recorded(n) for n in range(6)))
    lake = Lake(str(tmp_path / "lake"))
    import_recorded(lake, suite("command_guard"), [tmp_path / "results.jsonl"])
    state = check(lake.uri, return_state=True)
    assert state.is_completed()
    assert "all in order" in (state.message or "")
    assert "warning" not in (state.message or "")

    foreign = foreign_snapshot(lake)
    state = check(lake.uri, return_state=True)
    assert state.is_completed()
    assert "warning: 1 snapshots could not be recomputed (1: it was made with other versions" in (state.message or "")
    description, (row,) = artifact()
    assert "warning: 1 snapshots" in description
    assert foreign[:12] in row["mend"]

    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "reports"))
    monkeypatch.setenv("EVALAKE_REPORTS_URL", "https://reports.example/")
    check(lake.uri)
    (page,) = (tmp_path / "reports").glob("*/data-docs.html")
    assert artifact()[0].endswith(f"; data docs: [{page.name}](https://reports.example/{page.parent.name}/{page.name})")

    Path(lake.open(SAMPLES).file_uris()[0]).unlink()
    with pytest.raises(CheckError, match="data files are gone"):
        check(lake.uri)
