"""The integrity of stored tables: what a writer does beside, and what was never there."""

from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import QUARANTINE
from evalake.storage.integrity import find_tampering, has_traces, inspect
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from tests.integration.storage.rows import TOYS, toy


@pytest.mark.slow
def test_a_writer_that_appends_meanwhile_disturbs_nothing(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for n in range(20):
        land(lake, TOYS, pl.DataFrame([toy(f"k{n}", model="openai/gpt é:%")]))
        assert inspect(lake, TOYS).damage == list(find_tampering(lake, TOYS)) == []


def test_what_was_never_there_leaves_no_trace(tmp_path: Path) -> None:
    assert not has_traces(Lake(str(tmp_path / "lake")), QUARANTINE)
    assert not (tmp_path / "lake").exists()
