"""Where a service listens: others may reach it only where it can tell who asks; and how it spares pauses."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalake.server.listening import spare_what_lasts
from tests.e2e.processes import ROOT


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_others_reach_needs_a_way_to_tell_who_asks(host: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "evalake.cli",
        "serve",
        "--host",
        host,
        "--port",
        "0",
        "--lake",
        str(tmp_path / "lake"),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "EVALAKE_API_TOKEN"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "EVALAKE_API_TOKEN" in done.stderr
    assert "trusted_proxies" in done.stderr
    assert not (tmp_path / "lake").exists()


@pytest.fixture
def as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("as_before")
def test_the_collector_passes_over_what_was_there_at_the_start() -> None:
    of_the_start = [[number] for number in range(1000)]
    spare_what_lasts()
    assert gc.get_freeze_count() > len(of_the_start)
    assert not any(each is of_the_start for each in gc.get_objects())
