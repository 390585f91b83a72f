"""`evalake view`: whom it answers, and what its export says and refuses."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from evalake.admin.import_results import import_recorded
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.e2e.processes import PLAIN
from tests.integration.cli.command import ROOT, evalake_here, recorded
from tests.servers.chromium import PATIENCE, launched


@dataclass(frozen=True)
class Imported:
    """A lake, and the one run in it."""

    lake: Lake
    run: str


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    folder = tmp_path_factory.mktemp("view")
    (folder / "rows.jsonl").write_text("".join(recorded(number) + "\n" for number in range(4)))
    lake = Lake(str(folder / "lake"))
    return Imported(lake, import_recorded(lake, suite("command_guard"), [folder / "rows.jsonl"]))


def test_the_last_line_says_what_to_open(imported: Imported, tmp_path: Path) -> None:
    done = evalake_here(
        "view", "--lake", imported.lake.uri, "--run", imported.run, "--export", "shared/run", folder=tmp_path
    )

    page = tmp_path / "shared" / "run" / "index.html"
    assert (done.returncode, done.stdout) == (0, f"open {page}\n")
    assert done.stderr == "4 of 4 samples written\n"
    assert page.is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--export", "x"], "--export DIR and --run ID go together"),
        (["--run", "any"], "--export DIR and --run ID go together"),
        (["--export", "x", "--run", "other"], "has no run other: `evalake runs` lists the runs"),
    ],
)
def test_what_cannot_be_exported_is_wrong_usage(
    imported: Imported, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = evalake_here("view", "--lake", imported.lake.uri, *arguments, folder=tmp_path)

    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "x").exists()


@contextmanager
def viewing(lake: Lake, *options: str, **environment: str) -> Iterator[str]:
    """A process of `evalake view`; yields what it says, and requires that it says nothing else."""
    command = [sys.executable, "-m", "evalake.cli", "view", "--port", "0", "--lake", lake.uri, *options]
    env = {name: value for name, value in os.environ.items() if name != "EVALAKE_API_TOKEN"}
    with subprocess.Popen(command, cwd=ROOT, env={**env, **environment}, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline()
        finally:
            process.terminate()
        assert process.stderr.read() == ""


def answer(address: str, token: str | None = None) -> int:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.get(f"{address}/api/v1/runs", headers=headers, timeout=60, verify=PLAIN).status_code


def test_it_asks_for_a_token_and_its_link_opens(imported: Imported, chromium: str) -> None:
    del chromium
    with viewing(imported.lake) as said, launched() as browser:
        address, token = re.findall(r"evalake shows (http://127.0.0.1:\d+)/#token=(\S{30,}) ", said)[0]
        assert [answer(address, given) for given in (None, "wrong", token)] == [401, 401, 200]
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{address}/#token={token}")
        expect(page.get_by_role("table", name="Runs, newest first").get_by_role("row")).to_have_count(2)
        assert token not in page.url


def test_a_token_of_the_users_own_is_asked_for_and_not_shown(imported: Imported) -> None:
    with viewing(imported.lake, EVALAKE_API_TOKEN="mine-alone") as said:
        assert "EVALAKE_API_TOKEN" in said
        assert "mine-alone" not in said
        address = re.findall(r"http://127.0.0.1:\d+", said)[0]
        assert [answer(address), answer(address, "mine-alone")] == [401, 200]


def test_without_a_token_it_answers_this_machine_and_says_so(imported: Imported, tmp_path: Path) -> None:
    with viewing(imported.lake, "--no-token") as said:
        assert "without a token: every user of this machine can read it" in said
        assert answer(re.findall(r"http://127.0.0.1:\d+", said)[0]) == 200
    refused = evalake_here("view", "--no-token", "--host", "0.0.0.0", "--lake", imported.lake.uri, folder=tmp_path)
    assert refused.returncode == 2
    assert "reachable by others" in refused.stderr


def test_ctrl_c_ends_it_without_a_word(imported: Imported) -> None:
    command = [sys.executable, "-m", "evalake.cli", "view", "--port", "0", "--no-token", "--lake", imported.lake.uri]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = re.findall(r"http://127.0.0.1:\d+", process.stderr.readline())[0]
        assert answer(address) == 200
        assert httpx.get(f"{address}/api/v1/runs/{imported.run}/items", timeout=60, verify=PLAIN).status_code == 200
        process.send_signal(signal.SIGINT)
        assert (process.stderr.read(), process.wait(60)) == ("", 130)
