"""Refused lines that hold something of a sample go with it."""

import json
from pathlib import Path
from shutil import copytree

from evalake.admin.forget import choose, refused
from evalake.storage.lake import Lake
from evalake.tasks.publish import Refused, quarantine
from evalake.tasks.runtime.context import RunContext


def test_a_line_with_its_input_or_its_name_goes_and_another_stays(guard: RunContext, tmp_path: Path) -> None:
    copytree(guard.lake.uri, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    (sample,) = lake.frame(guard.suite.results).filter(sample_id="s37").collect()["sample_hash"].unique()
    choice = choose(lake, sample, None, None)
    before = refused(lake, choice, set())
    of_it = [json.dumps({"sample_id": "s37", "dataset": "mine"}), "cut off: command number 37"]
    lines = [*of_it, json.dumps({"sample_id": "s36", "dataset": "mine"}), "nothing of it"]
    quarantine(lake, "run", "batch", [Refused("samples", line, ("rule",), "why", line[:9]) for line in lines])
    assert len(refused(lake, choice, set()) - before) == len(of_it)
