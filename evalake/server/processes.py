"""Processes beside this one, and the sockets that they serve: bound once by the parent, kept through every crash.

Between a process and the one that started it is a line, one end of a socket pair on standard input. Only these two
hold it: the child reports over it that it accepts requests, and ends when its parent is gone, for a parent that is
killed closes it. asyncio and anyio end no child of a parent that was killed, and hand over no listening socket.

`python -m evalake.server.processes MODULE …` runs a library's module at such a line.
"""

import os
import pwd
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from evalake.core.errors import EvalakeError, UsageError

READY = b"ready\n"
GRACE_SECONDS = 6.0  # a service has two of them to end, and 20 seconds in all
SETTLED_SECONDS = 30.0  # a process that reports nothing and dies sooner would only die again
LOOK_SECONDS = 0.1
BACKLOG = 2048
_LISTENS = "0A"  # the state in the kernel's table


def listen(host: str, port: int) -> socket.socket:
    """Listen at an address; port 0 takes a free one. Clients that connect before a server accepts wait for it.

    Raises UsageError where that is impossible; it names the process that has the port.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if sys.platform == "linux":
            # Takes a port with old connections in TIME_WAIT. A second listener still fails; elsewhere it may take over.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot listen on {host}, port {port}: {reason}{_by_whom(port)}") from error
    return listener


def inherited(descriptor: str) -> socket.socket:
    """Take over a listening socket from the parent by its number."""
    return socket.socket(fileno=int(descriptor))


def address_of(listener: socket.socket) -> str:
    """Write the address of a listener as the URL that a browser takes."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _by_whom(port: int) -> str:
    """Say which process listens on a port, or at least whose it is; empty where the kernel shows neither."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                columns = line.split()
                if columns[3] == _LISTENS and int(columns[1].rpartition(":")[2], 16) == port:
                    return _process_with(f"socket:[{columns[9]}]") or f", by a process of {_user(int(columns[7]))}"
    return ""


def _process_with(file: str) -> str:
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(map(partial(_leads_to, file), (process / "fd").iterdir())):
                name = (process / "comm").read_text().strip()
                return f", by process {process.name} ({name}): end it by `kill {process.name}`, or take another port"
    return ""


def _leads_to(file: str, descriptor: Path) -> bool:
    try:
        return os.readlink(descriptor) == file  # noqa: PTH115 - is no path
    except OSError:  # it was closed meanwhile
        return False


def _user(number: int) -> str:
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user with the id {number}"


class Supervised:
    """One `python -m …` in a session of its own, and its successors."""

    _line: socket.socket  # to the process that runs now
    _ready: bool

    def __init__(self, *words: str, holding: Sequence[socket.socket] = ()) -> None:
        """Start it.

        Args:
            words: The module and its arguments. The module follows its parent (`follow_parent`).
            holding: Listening sockets that it inherits under their numbers: those that it serves, and those of the
                servers that it asks. Nobody else can listen there while it lives.
        """
        self._words, self._holding = words, holding
        self._over, self._starting = False, threading.Lock()
        self._process = self._begin()
        self._keeping = threading.Thread(target=self._keep, name=f"keeps {words[0]}", daemon=True)
        self._keeping.start()

    @property
    def pid(self) -> int:
        """The id of the process that runs now."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it runs, or starts again soon."""
        return self._keeping.is_alive()

    def is_ready(self, within_seconds: float = 0.0) -> bool:
        """Tell whether the process has reported that it accepts requests; waits for that at most so long."""
        with suppress(OSError, ValueError):  # it has ended, or another one begins
            if not self._ready and select.select([self._line], [], [], within_seconds)[0]:
                self._ready = self._line.recv(len(READY)) == READY
        return self._ready

    def wait_until_ready(
        self, what: str, seconds: float, messages: str, is_told_to_end: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until the process accepts requests. Raises EvalakeError, which says where its messages are, if not."""
        deadline = time.monotonic() + seconds
        while not self.is_ready(LOOK_SECONDS):
            if not self.is_running:
                raise EvalakeError(f"{what} ended at its start: {messages}")
            if is_told_to_end():
                raise EvalakeError("told to end before everything was up")
            if time.monotonic() > deadline:
                raise EvalakeError(f"{what} was not ready in {seconds:g} seconds: {messages}")

    def stop(self) -> None:
        """End the process, first by SIGTERM, then by SIGKILL; returns when it is gone."""
        with self._starting:
            self._over = True
            self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        _kill_group(self._process.pid)
        self._keeping.join()

    def _begin(self) -> "subprocess.Popen[bytes]":
        self._ready = False
        self._line, theirs = socket.socketpair()
        with theirs:
            return subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", *self._words],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                pass_fds=[each.fileno() for each in self._holding],
                start_new_session=True,  # signals of the terminal are for this process
            )

    def _keep(self) -> None:
        while True:
            began = time.monotonic()
            self._process.wait()
            _kill_group(self._process.pid)
            with self._starting:
                has_settled = self.is_ready() or time.monotonic() - began >= SETTLED_SECONDS
                if self._over or not has_settled:
                    return
                self._line.close()
                self._process = self._begin()


def _kill_group(leader: int) -> None:
    """Kill the processes that a process has left behind."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def follow_parent(grace_seconds: float = GRACE_SECONDS, *, silently: bool = False) -> Callable[[], None]:
    """End this process and its group when the parent has ended, first by SIGTERM.

    Args:
        grace_seconds: How long it may take after SIGTERM.
        silently: Write nothing to standard error from then on, so that its readers need not wait.

    Returns:
        A function that reports to the parent that this process accepts requests.
    """
    line = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)  # what this process starts does not hold the line

    def wait() -> None:
        _read_to_end(line)
        if silently:
            os.dup2(nothing, 2)
        threading.Thread(target=_end_group, args=(grace_seconds,), name="end-group", daemon=False).start()
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGTERM)  # which may be waiting for a signal

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
    return lambda: _report(line)


def _read_to_end(line: int) -> None:
    try:
        while os.read(line, 1):
            pass
    except ConnectionError:  # the parent has ended without reading the report
        return


def _end_group(grace_seconds: float) -> None:
    """End all processes of the group once this one has ended its main thread, or its time is over."""
    threading.main_thread().join(grace_seconds)
    os.killpg(0, signal.SIGKILL)


def _report(line: int) -> None:
    try:
        os.write(line, READY)
    except BrokenPipeError:  # the parent has ended, so this process ends, too
        return


def run(module: str, *arguments: str) -> None:
    """Run a module as `python -m` does, until it ends or the parent does."""
    # Prefect's worker sends itself SIGINT to end, which a script's background processes ignore.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    follow_parent()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run(*sys.argv[1:])
