"""`evalake serve`: what it refuses before it listens, and whom it answers."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.e2e.processes import PLAIN
from tests.integration.cli.command import ROOT, evalake_here


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--port", "65536"), "--port"),
        (("--config", "missing.toml"), "missing.toml"),
        (("--host", "0.0.0.0"), "EVALAKE_API_TOKEN"),
        (("--sessions", "postgresql://me@127.0.0.1:9/tarsy?sslmode=require"), "takes no parameter 'sslmode'"),
        (("--sessions", "postgresql://127.0.0.1:9/tarsy"), "names no user"),
        (("--sessions", "mysql://me@127.0.0.1:9/tarsy"), "mysql://me@127.0.0.1:9/tarsy"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    done = evalake_here("serve", *arguments, folder=tmp_path, EVALAKE_API_TOKEN="")
    assert done.returncode == 2
    assert told in done.stderr
    assert "Error" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@contextmanager
def serving(folder: Path, prefect_api: str, *options: str, **environment: str) -> Iterator[str]:
    """A process of `evalake serve`; yields what it says first."""
    command = [sys.executable, "-m", "evalake.cli", "serve", "--port", "0", "--lake", str(folder / "lake"), *options]
    env = {name: value for name, value in os.environ.items() if name != "EVALAKE_API_TOKEN"}
    env |= {"PREFECT_API_URL": prefect_api, "PYTHONPATH": str(ROOT), **environment}
    with subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield next(line for line in process.stderr if "evalake serves" in line)
        finally:
            process.terminate()


def answer(address: str, token: str | None = None) -> int:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.get(f"{address}/api/v1/status", headers=headers, timeout=60, verify=PLAIN).status_code


def test_it_asks_for_a_token_unless_it_is_told_to_answer_everybody_here(tmp_path: Path, prefect_api: str) -> None:
    with serving(tmp_path, prefect_api) as said:
        address, token, link = re.findall(
            r"evalake serves (http://127.0.0.1:\d+) .*; its token is (\S{30,}), and (\S+) opens the dashboard", said
        )[0]
        assert link == f"{address}/#token={token}"
        assert [answer(address, given) for given in (None, "wrong", token)] == [401, 401, 200]
    with serving(tmp_path, prefect_api, "--no-token", EVALAKE_API_TOKEN="mine-alone") as said:
        assert "without a token: every user of this machine can use it" in said
        assert answer(re.findall(r"http://127.0.0.1:\d+", said)[0]) == 200
    with serving(tmp_path, prefect_api, EVALAKE_API_TOKEN="mine-alone") as said:
        assert not any(word in said for word in ("its token", "mine-alone", "without a token"))
        address = re.findall(r"http://127.0.0.1:\d+", said)[0]
        assert [answer(address), answer(address, "mine-alone")] == [401, 200]
    refused = evalake_here("serve", "--no-token", "--host", "0.0.0.0", folder=tmp_path, EVALAKE_API_TOKEN="mine-alone")
    assert (refused.returncode, "reachable by others" in refused.stderr) == (2, True)
