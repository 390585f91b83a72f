"""A process that has imported everything, waits at a socket, and carries out in copies of itself what callers ask for.

It forks for each caller (`cli.warm.client`): one copy carries out what is asked for, another waits for that, passes
signals on, and tells how it ended. A copy has the caller's streams, arguments, folder and environment. Where the caller
is not like this process (`cli.warm.likeness`), it is refused, and does itself what it asked for.
"""

import gc
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum, auto
from itertools import count
from typing import Any, TextIO, cast

from cli.interrupt import INTERRUPTED
from cli.warm.client import ACCEPTED, GO_ON, LENGTH, PASSED_ON, PATIENCE_SECONDS, STATUS, peer
from core.forks import has_threads

_REFUSED = b"n"
_STREAMS = (0, 1, 2)


class End(Enum):
    """Why a warm process waits for no more callers."""

    CODE_HAS_CHANGED = auto()
    NOBODY_COMES = auto()
    ENOUGH_CAME = auto()


def await_request(
    listener: socket.socket,
    ours: Mapping[str, Any],
    *,
    owner: int | None = None,
    idle_seconds: float | None = None,
    most: int | None = None,
) -> dict[str, Any] | End:
    """Wait for callers, and fork for each.

    Args:
        listener: Where callers connect.
        ours: This process's likeness, taken before it imported anything.
        owner: A file that ends when nobody can come any more; None where the process is ended by a signal.
        idle_seconds: It also ends after so long without a caller.
        most: It also ends after so many callers.

    Returns:
        In a copy, what is to be carried out there; in the warm process itself, why it ends.
    """
    gc.collect()
    gc.freeze()  # a copy need not look through what was there before it
    known = dict(_files())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes copies that have ended
    watched: list[socket.socket | int] = [listener] if owner is None else [listener, owner]
    for _ in range(most) if most else count():
        if select.select(watched, [], [], idle_seconds)[0] != [listener]:
            return End.NOBODY_COMES
        connection, _ = listener.accept()
        with connection, _received(connection) as (request, streams):
            if request is None:
                continue
            if request["likeness"] != ours or has_threads():
                _answer(connection, _REFUSED)
            elif dict(_files(known)) != known:
                _answer(connection, _REFUSED)
                return End.CODE_HAS_CHANGED
            elif os.fork() == 0:
                listener.close()
                _become_copy(connection, streams, signal.Signals(request["when_gone"]))
                return request
    return End.ENOUGH_CAME


def take_the_callers_place(request: Mapping[str, Any]) -> None:
    """Take over the streams, folder, environment and arguments of the caller, in a copy."""
    sys.stdin, sys.stdout, sys.stderr = (_opened(stream) for stream in (sys.stdin, sys.stdout, sys.stderr))
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = request["arguments"]
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _received(connection: socket.socket) -> Iterator[tuple[dict[str, Any] | None, list[int]]]:
    """Receive a command's request and its streams, which are closed here at the end; None where not all of it came."""
    streams: list[int] = []
    request = None
    try:
        with suppress(OSError, ValueError, struct.error):  # the caller has gone
            if peer(connection) == os.geteuid():
                connection.settimeout(PATIENCE_SECONDS)
                length, streams, _, _ = socket.recv_fds(connection, LENGTH.size, len(_STREAMS))
                request = json.loads(connection.recv(LENGTH.unpack(length)[0], socket.MSG_WAITALL))
        yield (request or None if len(streams) == len(_STREAMS) else None), streams
    finally:
        for stream in streams:
            os.close(stream)


def _answer(connection: socket.socket, answer: bytes) -> None:
    with suppress(OSError):
        connection.sendall(answer)


def _files(known: Mapping[str, object] | None = None) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the files of all modules that are imported, or those that were known, with size and time."""
    files = known if known is not None else {getattr(each, "__file__", None) for each in sys.modules.values()}
    for file in files:
        with suppress(OSError, TypeError):
            there = os.stat(file)  # type: ignore[arg-type] # noqa: PTH116 - thousands of them
            yield file, (there.st_size, there.st_mtime_ns)  # type: ignore[misc]


def _become_copy(connection: socket.socket, streams: Sequence[int], when_gone: signal.Signals) -> None:
    """Fork once more, in a copy: the child returns, to carry the command out; the copy waits for it, and exits."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if not _may_begin(connection):
        os._exit(0)
    os.setsid()  # signals to the servers or from a terminal do not reach it, but those that its caller sends
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until the child has handlers of its own
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        for passed_on in PASSED_ON:
            signal.signal(passed_on, signal.SIG_DFL)  # whatever ignored it for the servers
        signal.signal(signal.SIGINT, _end_interrupted)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        for number, stream in zip(_STREAMS, streams, strict=True):
            os.dup2(stream, number)
        return
    with suppress(OSError):  # the child does the same: a signal that comes before it did would find no such group
        os.setpgid(child, child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    for stream in streams:
        os.close(stream)
    with suppress(OSError):
        _wait(connection, child, when_gone)
    os._exit(0)


def _may_begin(connection: socket.socket) -> bool:
    """Accept a caller, and hear whether it still waits: one that has given up does itself what it asked for."""
    try:
        connection.settimeout(None)
        connection.sendall(ACCEPTED)
        return connection.recv(1) == GO_ON
    except OSError:
        return False


def _end_interrupted(*_: object) -> None:
    """End as an interrupted command does, where the command that would do so has not begun yet."""
    os._exit(INTERRUPTED)


def _wait(connection: socket.socket, child: int, when_gone: signal.Signals) -> None:
    ended = os.pidfd_open(child)
    while ended not in select.select([ended, connection.fileno()], [], [])[0]:
        numbers = connection.recv(16)
        _pass_on(child, numbers or bytes([when_gone]))
        if not numbers:  # the caller has gone
            os.waitpid(child, 0)
            return
    connection.sendall(STATUS.pack(os.waitpid(child, 0)[1]))


def _pass_on(child: int, numbers: bytes) -> None:
    for number in numbers:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGSTOP if number == signal.SIGTSTP else number)


def _opened(stream: TextIO) -> TextIO:
    """Open a standard stream anew, as Python does at its start: its number now stands for another file."""
    number = stream.fileno()
    by_line = os.isatty(number) or stream is sys.stderr
    opened = open(  # noqa: SIM115 - for as long as the process lives
        number, stream.mode, 1 if by_line else -1, stream.encoding, stream.errors, closefd=False
    )
    return cast(TextIO, opened)
