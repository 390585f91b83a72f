"""Processes of queries as copies of a fork server: for each process that asks its own, made anew where it has gone."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from core.errors import QueryError
from storage.lake import Lake
from storage.sql.forked import Forked, ForkServer
from storage.sql.query import query
from storage.sql.start import Limits, start

pytestmark = pytest.mark.slow

ENDLESS = "select count(*) from range(10000000000) a, range(10000) b"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ForkServer]:
    """A fork server that has made a copy already: the one for the second query."""
    fresh = ForkServer()
    monkeypatch.setattr("storage.sql.start.FORK_SERVER", fresh)
    for number in range(2):
        assert asked(tmp_path, number) == number
    yield fresh
    fresh.end()


def asked(folder: Path, number: int) -> int:
    (answer,) = query(Lake(str(folder)), (), f"select {number} as n")["n"]
    return int(answer)


def process_of(server: ForkServer) -> psutil.Process:
    assert server._server is not None
    return psutil.Process(server._server.pid)


def test_the_first_query_starts_a_process_and_those_that_follow_are_copies(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("storage.sql.start.FORK_SERVER", fresh := ForkServer())
    kinds = []
    for _ in range(3):
        with start(str(tmp_path)) as started:
            kinds.append(type(started.process))
    assert kinds == [subprocess.Popen, Forked, Forked]
    fresh.end()


def test_each_of_many_at_once_gets_its_own_answer(server: ForkServer, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda number: asked(tmp_path, number), range(40))) == list(range(40))
    assert process_of(server).children() == []


def test_one_that_is_stopped_takes_no_other_with_it(server: ForkServer, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        endless = threads.submit(query, Lake(str(tmp_path)), (), ENDLESS, limits=Limits(seconds=2.0))
        assert [asked(tmp_path, number) for number in range(3)] == [0, 1, 2]
        with pytest.raises(QueryError, match="stopped at its time limit of 2 s"):
            endless.result()
    assert process_of(server).children() == []


def test_where_nobody_waits_for_the_answer_any_more_the_copy_ends(server: ForkServer, tmp_path: Path) -> None:
    with start(str(tmp_path)) as started:
        (copy,) = process_of(server).children()
        assert started.process.poll() is None
    assert started.process.returncode == started.process.poll() == -signal.SIGKILL
    assert not copy.is_running()


def test_where_it_was_idle_another_is_started(server: ForkServer, tmp_path: Path) -> None:
    before = process_of(server)
    assert server._requests is not None
    server._requests.close()  # as after a quarter of an hour, it ends by itself
    assert before.wait(60) == 0
    assert asked(tmp_path, 7) == 7
    assert process_of(server) != before


def test_where_it_was_killed_queries_start_by_themselves_and_that_is_said(
    server: ForkServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process_of(server).kill()
    assert [asked(tmp_path, number) for number in range(2)] == [0, 1]
    (said,) = caplog.messages
    assert said.startswith("queries start by themselves")


SCRIPT = """
import os, sys
from storage.lake import Lake
from storage.sql.query import query
from storage.sql.start import FORK_SERVER
for _ in range(2):
    query(Lake("lake"), (), "select 1 as n")
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
for number in range(3):
    assert query(Lake("lake"), (), f"select {number} as n")["n"].item() == number
print(FORK_SERVER._server.pid)
"""


def test_a_process_that_was_forked_has_its_own_and_all_end_with_theirs(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stderr, done.returncode) == ("", 0)
    servers = set(map(int, done.stdout.split()))
    assert len(servers) == 2
    assert not any(map(psutil.pid_exists, servers))
