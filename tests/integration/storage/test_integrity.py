"""The integrity of stored tables: what a writer does beside, and what was never there."""

from pathlib import Path

import polars as pl

from evalake.storage.integrity import find_tampering, inspect
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from tests.integration.storage.rows import TOYS, toy


def test_a_writer_that_appends_meanwhile_disturbs_nothing(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for n in range(20):
        land(lake, TOYS, pl.DataFrame([toy(f"k{n}", model="openai/gpt é:%")]))
        assert inspect(lake, TOYS).damage == list(find_tampering(lake, TOYS)) == []
