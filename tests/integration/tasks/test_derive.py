"""What a suite derives from its rows: again, it adds nothing; and nothing where it derives nothing."""

import shutil
from dataclasses import replace
from pathlib import Path

from evalake.storage.lake import Lake
from evalake.tasks.collect import derive
from evalake.tasks.publish import Published
from evalake.tasks.runtime.context import RunContext


def test_a_panel_is_derived_once(audits: RunContext, tmp_path: Path) -> None:
    shutil.copytree(audits.lake.uri, tmp_path / "lake")
    again = derive(replace(audits, lake=Lake(str(tmp_path / "lake"))), "import")
    assert (again.landed.inserted, again.quarantined) == (0, 0)
    assert again.landed.already_present > 0


def test_a_suite_that_derives_nothing_publishes_nothing(guard: RunContext) -> None:
    assert derive(guard, "import") == Published()
