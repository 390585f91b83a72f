"""What is printed of a run whose end could not be written down."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from prefect.client.schemas.objects import State
from prefect.states import Failed

from cli.outcome import finish
from core.errors import LakeError
from storage.lake import Lake
from tasks.runtime import runs


def test_a_run_whose_lake_takes_nothing_any_more_ends_in_the_lakes_own_words(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    begun = runs.Run("r", "command_guard", "run", {}, {}, ["m"], [], 1, 1, datetime.now(UTC))
    runs.save(lake, begun)
    state: State[str] = Failed(data=LakeError("cannot write the table runs: read-only file system"))
    with pytest.raises(LakeError, match="read-only file system"):
        finish(state, "r", lake.uri, tmp_path, "evalake run command_guard", as_json=True)
    runs.save(lake, begun.ended("failed"))  # which also forgets it, for the process would mark it as interrupted
