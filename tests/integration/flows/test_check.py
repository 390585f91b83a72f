"""The flow `check`: completes, completes with a warning, or fails; its artifact says why."""

from pathlib import Path

import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import SAMPLES
from evalake.flows.check import CheckError, check
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.integration.cli.command import recorded
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.storage.foreign_snapshot import foreign_snapshot


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
    assert "warning: 1 snapshots could not be recomputed: it was made with other versions" in (state.message or "")
    description, (row,) = newest_artifact("check")
    assert "warning: 1 snapshots" in description
    assert foreign[:12] in row["mend"]

    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "reports"))
    monkeypatch.setenv("EVALAKE_REPORTS_URL", "https://reports.example/")
    check(lake.uri)
    (page,) = (tmp_path / "reports").glob("*/data-docs.html")
    assert newest_artifact("check")[0].endswith(
        f"; data docs: [{page.name}](https://reports.example/{page.parent.name}/{page.name})"
    )

    Path(lake.open(SAMPLES).file_uris()[0]).unlink()
    with pytest.raises(CheckError, match="data files are gone"):
        check(lake.uri)
