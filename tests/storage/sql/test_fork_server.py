"""The fork server by itself: it may be copied, has nothing that a query may not see, and ends when nobody asks."""

import socket
import subprocess
import sys

import psutil
import pytest

from storage.sql.forked import copy_of
from tests.cli.command import ROOT

pytestmark = pytest.mark.slow


def started(code: str = "") -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Start one that runs some code first; returns it with the socket through which it is asked."""
    requests, theirs = socket.socketpair()
    with theirs:
        main = f"{code}\nfrom storage.sql import fork_server as server\n"
        main += "server.IDLE_SECONDS = 0.01\nserver.main(int(sys.argv[1]))"
        server = subprocess.Popen(
            [sys.executable, "-P", "-c", f"import sys\n{main}", str(theirs.fileno())],
            env={"PYTHONPATH": str(ROOT)},
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
        )
    return server, requests


def test_what_it_imports_starts_no_thread_so_that_a_copy_holds_no_lock_of_one() -> None:
    code = "import storage.sql.process; from core.forks import has_threads; print(has_threads())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_one_with_threads_makes_no_copy() -> None:
    server, requests = started("import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()")
    with server, requests:
        assert copy_of(requests) is None
        _, said = server.communicate(timeout=60)
    assert (server.returncode, said) == (1, b"a process with threads cannot be copied for queries\n")


def test_it_ends_when_nobody_asks_but_not_before_its_copies_have() -> None:
    server, requests = started()
    with server, requests:
        copy = copy_of(requests)
        assert copy is not None
        with copy:
            assert server.poll() is None
            copy.kill()
        assert server.wait(60) == 0


def test_the_copies_end_with_the_process_that_asks() -> None:
    server, requests = started()
    with server:
        copy = copy_of(requests)
        assert copy is not None
        (child,) = psutil.Process(server.pid).children()
        requests.close()
        assert server.wait(60) == 0
        assert not child.is_running()
        with copy:
            pass
