"""`evalake explain`: the parts of a difference, and the rows behind one."""

import json
import shlex

import pytest

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_the_parts_sum_up_to_the_difference_and_lead_to_their_rows(audited: Imported) -> None:
    sides = ("good", "poor", "--run", audited.run, "--metric", "target_detection_rate")
    done = evalake_here("explain", *sides, folder=audited.folder)
    assert done.returncode == 0, done.stderr
    assert "A-B      +0.7000" in done.stdout
    told = done.stdout.splitlines()
    commands = [shlex.split(line.removeprefix("rows: ")) for line in told if line.startswith("rows: ")]
    assert max(len(line) for line in told if not line.startswith("rows: ")) <= 80
    parts = json.loads(evalake_here("explain", *sides, "--format", "json", folder=audited.folder).stdout)
    assert sum(part["contribution"] for part in parts) == pytest.approx(0.7)
    assert [command[-1] for command in commands] == [part["part"] for part in parts if part["samples"]] != []
    for _, *words in commands:
        rows = json.loads(evalake_here(*words, "--format", "json", folder=audited.folder).stdout)
        assert {row["part"] for row in rows} == {words[-1]}


def test_a_part_that_no_difference_has_is_named(audited: Imported) -> None:
    done = evalake_here("explain", "good", "poor", "--rows", "luck", folder=audited.folder)
    assert done.returncode == 2
    assert "no part luck: choose" in done.stderr
