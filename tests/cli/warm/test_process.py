"""What the warm process does with commands, callers of other kinds, and code that has changed."""

import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cli.warm import likeness
from tests.cli.command import recorded
from tests.cli.warm.conftest import Warm
from tests.e2e.processes import wait_until

ENDLESS = "select sum(range) from range(1000000000000)"


def write(warm: Warm) -> str:
    """Write two recorded results into the user's folder; returns the file's name."""
    (warm.folder / "results.jsonl").write_text(f"{recorded(0)}\n{recorded(1)}\n")
    return "results.jsonl"


@pytest.fixture(autouse=True)
def signals_not_ignored() -> Iterator[None]:
    """Have what tests start ignore no signal, whatever ignored some for the tests, such as `nohup`."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGTSTP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def endless(warm: Warm) -> tuple["subprocess.Popen[str]", psutil.Process]:
    """Start a command that does not end by itself: the caller, and the copy that carries it out for it."""
    wait_until(lambda: not warm.copies(), "the end of the copies of other tests")
    caller = warm.start("sql", ENDLESS)
    (copy,) = wait_until(warm.copies, "a copy that carries the command out")
    return caller, copy


def has_begun(copy: psutil.Process) -> bool:
    """Tell whether a copy's query has a process that is no longer a copy of it."""
    with suppress(psutil.NoSuchProcess):  # one that ended while it was looked at
        return any(child.cmdline() not in ([], copy.cmdline()) for child in copy.children())
    return False


def test_a_copy_carries_the_command_out_where_and_as_its_caller_would(warm: Warm) -> None:
    caller, copy = endless(warm)
    wait_until(lambda: Path(copy.cwd()) == warm.folder, "that it is in its caller's folder")
    assert copy.environ()["XDG_STATE_HOME"] == warm.environment["XDG_STATE_HOME"]
    caller.kill()
    caller.communicate(timeout=300)
    wait_until(lambda: not copy.is_running(), "the end of the copy")
    code, out, err = warm.run("import", write(warm), "--suite", "command_guard", "--json")
    assert (code, json.loads(out)["rows"]["landed"]) == (0, 2), err
    assert (warm.folder / "lake" / "calls").is_dir()


def test_output_and_exit_code_are_those_of_a_command_by_itself(warm: Warm) -> None:
    for words in (("runs", "--json"), ("metrics", "--run", "nothing"), ("sql", "select 1 as x"), ("runs", "--nothing")):
        there = warm.run(*words)
        assert there == warm.run(*words, TZ="UTC")  # of another kind, so carried out by itself
        assert "Traceback" not in there[2]


def test_a_caller_of_another_kind_carries_its_command_out_itself(warm: Warm) -> None:
    caller = warm.start("sql", ENDLESS, PREFECT_LOGGING_LEVEL="DEBUG")
    wait_until(lambda: psutil.Process(caller.pid).children(), "the process of its query")
    assert warm.copies() == []
    caller.send_signal(signal.SIGINT)
    caller.communicate(timeout=300)
    assert caller.returncode == 130


def test_keys_and_settings_that_are_read_late_are_the_callers(warm: Warm) -> None:
    words = ("run", "command_guard", "--models", "openai/gpt-4o-mini", "--first", "1", "--dry-run")
    code, _, err = warm.run(*words, OPENAI_API_KEY="")
    assert (code, "OPENAI_API_KEY" in err) == (2, True)
    assert warm.run(*words, OPENAI_API_KEY="sk-of-this-caller")[0] == 0
    assert warm.run(*words, OPENAI_API_KEY="")[0] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_and_its_caller_alike(warm: Warm, number: signal.Signals) -> None:
    caller, copy = endless(warm)
    caller.send_signal(number)
    caller.communicate(timeout=300)
    assert caller.returncode == (130 if number == signal.SIGINT else -number)
    wait_until(lambda: not copy.is_running(), "the end of the copy")


def test_a_hangup_that_its_caller_ignores_does_not_end_a_command(warm: Warm) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which what is started inherits, as under nohup
    try:
        caller, copy = endless(warm)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for number in (signal.SIGHUP, signal.SIGTERM):
        caller.send_signal(number)
    caller.communicate(timeout=300)
    assert caller.returncode == -signal.SIGTERM
    wait_until(lambda: not copy.is_running(), "the end of the copy")


def test_a_stopped_command_goes_on(warm: Warm) -> None:
    caller, copy = endless(warm)
    # Until the process of its query has begun, the copy waits for that, and not as a stopped one: the system says so.
    wait_until(lambda: has_begun(copy), "the process of its query")
    caller.send_signal(signal.SIGTSTP)
    wait_until(lambda: copy.status() == psutil.STATUS_STOPPED, "that it stops")
    caller.send_signal(signal.SIGCONT)
    wait_until(lambda: copy.status() != psutil.STATUS_STOPPED, "that it goes on")
    caller.send_signal(signal.SIGINT)
    caller.communicate(timeout=300)
    assert caller.returncode == 130


def test_when_its_caller_is_killed_the_command_ends(warm: Warm) -> None:
    caller, copy = endless(warm)
    caller.kill()
    caller.communicate(timeout=300)
    wait_until(lambda: not copy.is_running(), "the end of the copy")
    assert warm.copies() == []


def test_when_its_copy_is_killed_the_caller_ends_the_same_way(warm: Warm) -> None:
    caller, copy = endless(warm)
    copy.kill()
    caller.communicate(timeout=300)
    assert caller.returncode == -signal.SIGKILL


def test_when_what_waits_for_its_copy_is_killed_it_says_so(warm: Warm) -> None:
    caller, copy = endless(warm)
    parent = copy.parent()
    assert parent is not None
    parent.kill()
    assert caller.wait(timeout=300) == 1
    copy.kill()  # which has the caller's streams
    assert caller.communicate(timeout=300)[1] == "evalake: the process that carried this out was killed: run it again\n"


def test_only_its_user_reaches_it(warm: Warm) -> None:
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (warm.socket, warm.socket.parent)]
    assert not [mode for mode in modes if mode & 0o077]


def test_what_says_nothing_that_can_be_read_hinders_nobody(warm: Warm) -> None:
    for said in (b"", b"\0\0\0\4junk", b"\xff\xff\xff\xff", b"\0\0\0\2{}"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(warm.socket))
            connection.sendall(said)
    assert warm.run("runs")[0] == 0
    assert warm.process.is_running()


def test_what_a_caller_asked_for_that_has_given_up_is_not_done_here_too(warm: Warm) -> None:
    code = "import json; from cli.environment import prepare; prepare(); from cli.warm.likeness import likeness; "
    told = subprocess.run(
        [sys.executable, "-c", f"{code}print(json.dumps(likeness()))"],
        env=warm.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    asked = {
        "arguments": ["evalake", "import", write(warm), "--suite", "command_guard", "--lake", "other"],
        "environment": warm.environment,
        "folder": str(warm.folder),
        "likeness": json.loads(told.stdout),
        "umask": 0o077,
        "when_gone": signal.SIGTERM,
    }
    message = json.dumps(asked).encode()
    with socket.socket(socket.AF_UNIX) as connection, Path(os.devnull).open("r+b") as nothing:
        connection.connect(str(warm.socket))
        socket.send_fds(connection, [struct.pack("!I", len(message))], [nothing.fileno()] * 3)
        connection.sendall(message)
    assert warm.run("runs")[0] == 0  # the next one, so the first has been received
    wait_until(lambda: not warm.copies() and not warm.process.children(), "the end of all copies")
    assert not (warm.folder / "other").exists()


def test_it_begins_anew_with_code_that_has_changed(warm: Warm) -> None:
    file = Path(likeness.__file__)
    before, was = warm.socket.stat().st_ctime_ns, file.stat()
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns + 1_000_000_000))
    try:
        assert warm.run("runs")[0] == 0  # by itself, for what is warm is out of date
        wait_until(lambda: warm.socket.exists() and warm.socket.stat().st_ctime_ns != before, "a new socket")
        caller, copy = endless(warm)
        caller.kill()
        caller.communicate(timeout=300)
        wait_until(lambda: not copy.is_running(), "the end of the copy")
    finally:
        os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def test_closed_streams_are_no_obstacle(warm: Warm) -> None:
    command = f"exec {sys.executable} -m cli runs <&- >&-"
    done = subprocess.run(
        ["sh", "-c", command], cwd=warm.folder, env=warm.environment, stderr=subprocess.PIPE, text=True
    )
    assert (done.returncode, done.stderr) == (0, warm.run("runs")[2])
