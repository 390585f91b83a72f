"""`evalake forget`: first what it would do, then what it did, and nothing that was not named."""

import json
from pathlib import Path

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Copy, Imported


def test_a_dry_run_tells_what_is_then_gone(recorded_results: Imported, copy: Copy) -> None:
    lake = copy(recorded_results)
    (sample,) = lake.query("select sample_hash from samples where sample_id = 's3'")
    words = ("forget", "--sample", sample["sample_hash"])
    planned = evalake_here(*words, "--dry-run", folder=lake.folder)
    assert planned.returncode == 0, planned.stderr
    assert "1 samples would be forgotten" in planned.stdout
    assert "nothing was changed" in planned.stdout
    assert lake.query("select count(*) as n from samples") == [{"n": 40}]
    done = json.loads(evalake_here(*words, "--json", folder=lake.folder).stdout)
    assert (done["samples"], done["rows"]["command_guard_results"]) == (1, 1)
    assert lake.query("select count(*) as n from command_guard_results") == [{"n": 39}]


def test_who_names_nothing_forgets_nothing(tmp_path: Path) -> None:
    done = evalake_here("forget", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
