"""A command that hands over what it was asked, as its user sees it on a terminal and without a warm process."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from cli.waiting import ERASE
from cli.warm.client import carry_out
from tests.cli.command import evalake
from tests.cli.warm.conftest import Warm


def on_a_terminal(warm: Warm, *words: str) -> str:
    """What a terminal is written."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "cli", *words],
        cwd=warm.folder,
        env=warm.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while read := os.read(ours, 4096):
                written += read
        except OSError:  # as Linux ends a terminal that nobody has open any more
            pass
        finally:
            os.close(ours)
    assert process.returncode == 0
    return written.decode()


def test_on_a_terminal_what_it_begins_with_is_said_once(warm: Warm) -> None:
    written = on_a_terminal(warm, "runs")
    said = f"evalake runs: opening the lake …{ERASE}"
    assert written.startswith(said)
    assert "opening" not in written.removeprefix(said)
    assert "no runs" in written


def test_where_no_process_is_warm_nobody_carries_it_out(tmp_path: Path) -> None:
    assert carry_out(tmp_path) is None


def test_what_starts_and_ends_servers_is_carried_out_by_the_command(warm: Warm) -> None:
    done = evalake("status", "--json", folder=warm.folder, **warm.environment)
    assert done.returncode == 0, done.stderr
    assert '"pid"' in done.stdout
