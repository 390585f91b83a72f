"""A process as a warm process carries it out: its streams are handed over, its signals passed on."""

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from cli.warm.likeness import likeness
from core.errors import EvalakeError
from service.local.background import WARM

LENGTH, STATUS = struct.Struct("!I"), struct.Struct("!i")
ACCEPTED, GO_ON = b"y", b"g"
PATIENCE_SECONDS = 5.0
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCONT)


def carry_out(
    folder: Path, patience_seconds: float = PATIENCE_SECONDS, when_gone: signal.Signals = signal.SIGTERM
) -> int | None:
    """Have a warm process carry out what this process was started for, to its end.

    Args:
        folder: Where the warm process has its socket.
        patience_seconds: How long it may take to answer.
        when_gone: The signal by which it ends where this process is killed.

    Returns:
        The exit code; None where there is no warm process, or it is not like this one: carry it out here then.

    Raises:
        EvalakeError: The process that carried it out was killed.
    """
    if not _has_streams():
        return None
    with socket.socket(socket.AF_UNIX) as connection, ExitStack() as passing:
        connection.settimeout(patience_seconds)
        with _signals_held():  # one that comes while the copy is made reaches it, too
            try:
                with address(folder) as place:
                    connection.connect(place)
                if peer(connection) != os.geteuid() or not _accepted(connection, when_gone):
                    return None
                # Only now does the copy begin: had this process given up waiting for it, it would be done twice.
                connection.sendall(GO_ON)
            except OSError:
                return None
            connection.settimeout(None)
            passing.enter_context(_signals_passed_on(connection))
        answer = connection.recv(STATUS.size, socket.MSG_WAITALL)
    if len(answer) < STATUS.size:
        raise EvalakeError("the process that carried this out was killed: run it again")
    return _ended(STATUS.unpack(answer)[0])


@contextmanager
def address(folder: Path) -> Iterator[str]:
    """Yield an address of the socket that is short enough, however long the folder's path is."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{WARM}"
    finally:
        os.close(directory)


def peer(connection: socket.socket) -> int:
    """Look up the id of the user who holds the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def _has_streams() -> bool:
    """Tell whether this process's standard streams are files 0, 1 and 2, as those of a copy would be."""
    try:
        return [stream.fileno() for stream in (sys.stdin, sys.stdout, sys.stderr)] == [0, 1, 2]
    except (AttributeError, OSError, ValueError):
        return False


def _accepted(connection: socket.socket, when_gone: signal.Signals) -> bool:
    sys.stdout.flush()
    umask = os.umask(0)
    os.umask(umask)
    asked: dict[str, Any] = {
        "arguments": sys.argv,
        "environment": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109 - as the shell's user came here, through links or not
        "likeness": likeness(),
        "umask": umask,
        "when_gone": when_gone,
    }
    message = json.dumps(asked).encode()
    socket.send_fds(connection, [LENGTH.pack(len(message))], [0, 1, 2])
    connection.sendall(message)
    return connection.recv(1) == ACCEPTED


@contextmanager
def _signals_held() -> Iterator[None]:
    """Have signals that would be passed on wait until the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*PASSED_ON, signal.SIGTSTP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _signals_passed_on(connection: socket.socket) -> Iterator[None]:
    def pass_on(number: int, _: FrameType | None) -> None:
        try:
            connection.send(bytes([number]))
        except OSError:  # it has ended meanwhile
            return

    def stop(number: int, frame: FrameType | None) -> None:
        pass_on(number, frame)
        os.kill(os.getpid(), signal.SIGSTOP)

    handlers = {**dict.fromkeys(PASSED_ON, pass_on), signal.SIGTSTP: stop}
    # What is ignored, as the end of the terminal is under `nohup`, stays so.
    ours = {number: handler for number, handler in handlers.items() if signal.getsignal(number) != signal.SIG_IGN}
    before = {number: signal.signal(number, handler) for number, handler in ours.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ended(status: int) -> int:
    """End as the command did: by its exit code, or by the signal that ended it."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code != signal.SIGKILL:  # which cannot be set
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code
