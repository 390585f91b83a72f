"""Processes of queries as the fork server makes them (`storage.sql.fork_server`), seen from the process that asks."""

import atexit
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from threading import Lock
from typing import IO, Self

from storage.sql.fork_server import ACCEPTED, STATUS

_LOG = logging.getLogger(__name__)
PATIENCE_SECONDS = 60.0  # that the first copy waits for the imports


class Forked:
    """A copy of the fork server: of `subprocess.Popen`, what a query uses."""

    def __init__(self, connection: socket.socket, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self._connection = connection
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None

    def kill(self) -> None:
        """Have the copy killed."""
        with suppress(OSError):  # it has ended
            self._connection.shutdown(socket.SHUT_WR)

    def poll(self) -> int | None:
        """Look up the exit code; None where it has not ended."""
        try:
            return self._ended(socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def wait(self) -> int:
        """Wait until the copy has ended; returns its exit code, or less than 0 for the signal that ended it."""
        return self._ended()

    def _ended(self, flags: int = 0) -> int:
        if self.returncode is None:
            status = self._connection.recv(STATUS.size, flags)
            # Without one, the fork server was killed, and with it whoever could ask what became of the copy.
            killed = len(status) < STATUS.size
            self.returncode = -signal.SIGKILL if killed else os.waitstatus_to_exitcode(STATUS.unpack(status)[0])
            self._connection.close()
        return self.returncode

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            with suppress(BrokenPipeError):
                stream.close()
        self.wait()


class ForkServer:
    """The fork server of this process, started and started again when a query needs it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = 0  # the process whose all this is: a copy of it has its own
        self._asked = 0
        self._server: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def fork(self, environment: Mapping[str, str]) -> Forked | None:
        """Make a process for a query.

        Args:
            environment: Of the fork server, where it is to be started.

        Returns:
            The process; None where the caller is to start one itself: for the first query, since a command asks only
            one, and where there can be no fork server.
        """
        with self._lock:
            if self._owner != os.getpid():
                self._owner, self._asked, self._server, self._requests = os.getpid(), 0, None, None
            self._asked += 1
            if self._asked == 1 or sys.platform != "linux":
                return None
            if self._server is None or self._server.poll() == 0:  # it was idle
                self._start(environment)
            if self._requests is None:
                return None
            if (copy := copy_of(self._requests)) is None:
                _LOG.warning("queries start by themselves, for the process that they are copied from has ended")
                self._requests = None
            return copy

    def _start(self, environment: Mapping[str, str]) -> None:
        if self._server is None:
            atexit.register(self.end)
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-B", "-m", "storage.sql.fork_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for this process
            )

    def end(self) -> None:
        """End the fork server, with the queries that still run, where this process has one."""
        if self._owner == os.getpid() and self._server is not None and self._requests is not None:
            self._requests.close()
            self._server.wait()


def copy_of(requests: socket.socket) -> Forked | None:
    """Ask a fork server for a copy; None where there is nobody who makes one."""
    with ExitStack() as ours, ExitStack() as theirs:
        connection, caller = socket.socketpair()
        ours.enter_context(connection)
        theirs.enter_context(caller)
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        streams = [
            ours.enter_context(open(end, mode))  # noqa: PTH123 - the stack closes it
            for end, mode in ((stdin[1], "wb"), (stdout[0], "rb"), (stderr[0], "rb"))
        ]
        for end in (stdin[0], stdout[1], stderr[1]):
            theirs.callback(os.close, end)
        connection.settimeout(PATIENCE_SECONDS)
        with suppress(OSError):
            socket.send_fds(requests, [b"q"], [caller.fileno(), stdin[0], stdout[1], stderr[1]])
            theirs.close()
            if connection.recv(1) == ACCEPTED:
                connection.settimeout(None)
                ours.pop_all()
                return Forked(connection, *streams)
    return None
