"""Commands that serve pages: the viewer and the service."""

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
from tests.cases import cases_beside
from tests.e2e.processes import PLAIN
from tests.integration.cli.command import ROOT, evalake_here, recorded
from tests.servers.chromium import PATIENCE, launched

CASES = cases_beside(__file__, "mistakes.json")

# `evalake view`: whom it answers, and what its export says and refuses.


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


@pytest.mark.parametrize(("arguments", "said"), CASES["view"])
def test_what_cannot_be_exported_is_wrong_usage(
    imported: Imported, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = evalake_here("view", "--lake", imported.lake.uri, *arguments, folder=tmp_path)

    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "x").exists()


@contextmanager
def serving(folder: Path, *words: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """A process of `evalake view` or `serve` at a free port, which ends with the block."""
    command = [sys.executable, "-m", "evalake.cli", *words, "--port", "0"]
    env = {name: value for name, value in os.environ.items() if name != "EVALAKE_API_TOKEN"}
    env |= {"PYTHONPATH": str(ROOT), **environment}
    with subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def first(process: "subprocess.Popen[str]", words: str) -> str:
    """The first line with these words that the process says."""
    return next(line for line in process.stderr or () if words in line)


@contextmanager
def viewing(lake: Lake, *options: str, **environment: str) -> Iterator[str]:
    """What `evalake view` says, which must be all."""
    with serving(ROOT, "view", "--lake", lake.uri, *options, **environment) as process:
        yield first(process, "")
        process.terminate()
        assert process.stderr is not None
        assert process.stderr.read() == ""


def address_in(said: str) -> str:
    return str(re.findall(r"http://127.0.0.1:\d+", said)[0])


def answer(address: str, token: str | None = None, path: str = "runs") -> int:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return httpx.get(f"{address}/api/v1/{path}", headers=headers, timeout=600, verify=PLAIN).status_code


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
        assert [answer(address_in(said), given) for given in (None, "mine-alone")] == [401, 200]


def test_without_a_token_it_answers_this_machine_and_says_so_and_ctrl_c_ends_it_without_a_word(
    imported: Imported, tmp_path: Path
) -> None:
    with serving(ROOT, "view", "--no-token", "--lake", imported.lake.uri) as process:
        said = first(process, "")
        assert "without a token: every user of this machine can read it" in said
        assert [answer(address_in(said), path=path) for path in ("runs", f"runs/{imported.run}/items")] == [200, 200]
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert (process.stderr.read(), process.wait(600)) == ("", 130)
    refused = evalake_here("view", "--no-token", "--host", "0.0.0.0", "--lake", imported.lake.uri, folder=tmp_path)
    assert refused.returncode == 2
    assert "reachable by others" in refused.stderr


# `evalake serve`: what it refuses before it listens, and whom it answers.


@pytest.mark.parametrize(("arguments", "told"), CASES["serve"])
def test_a_mistake_is_one_line(tmp_path: Path, arguments: list[str], told: str) -> None:
    done = evalake_here("serve", *arguments, folder=tmp_path, EVALAKE_API_TOKEN="")
    assert done.returncode == 2
    assert told in done.stderr
    assert "Error" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_lake_that_cannot_be_read_ends_each_server_at_its_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for words in (("view", "--no-token"), ("serve", "--no-token"), ("up",)):
        done = evalake_here(*words, "--lake", tmp_path / "file", folder=tmp_path)
        why = f"cannot read the lake {tmp_path}/file (Not a directory): name another with --lake"
        assert (done.returncode, done.stderr) == (1, f"evalake: {why}\n")


def test_it_asks_for_a_token_and_answers_others_only_with_one(tmp_path: Path, prefect_api: str) -> None:
    with serving(tmp_path, "serve", PREFECT_API_URL=prefect_api) as process:
        address, token, link = re.findall(
            r"evalake serves (http://127.0.0.1:\d+) .*; its token is (\S{30,}), and (\S+) opens the dashboard",
            first(process, "evalake serves"),
        )[0]
        assert link == f"{address}/#token={token}"
        assert [answer(address, given, "status") for given in (None, "wrong", token)] == [401, 401, 200]
    refused = evalake_here("serve", "--no-token", "--host", "0.0.0.0", folder=tmp_path, EVALAKE_API_TOKEN="mine-alone")
    assert (refused.returncode, "reachable by others" in refused.stderr) == (2, True)
