"""Has the warm process of a copied worker be a copy, too: forked before the worker begins, it waits to be that process.

The fork server has imported what flow runs import, so that neither the warm process nor its flow runs need to. What a
worker starts after it, as after an idle time, starts by itself; how that goes is seen in tests/cli/warm.
"""

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from cli.warm import flow_runs

_LENGTH = struct.Struct("!I")
_MOST = 8  # files that it is given
_BEYOND = 100  # the numbers that files may be told to have


def be_ready() -> bool:
    """Fork a process, and have `WarmFlowRuns` take it for the first one that it starts.

    Returns:
        Whether this is that process, now with the arguments, environment and files that it was started with.
    """
    ours, theirs = socket.socketpair()
    process = os.fork()
    if process:
        theirs.close()
        started = {**vars(subprocess), "Popen": partial(_Ready, [(process, ours)])}
        flow_runs.subprocess = SimpleNamespace(**started)  # type: ignore[assignment]
        return False
    ours.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the worker
    with theirs:
        length, files, _, _ = socket.recv_fds(theirs, _LENGTH.size, _MOST)
        if not length:  # the worker has gone
            os._exit(0)
        asked = json.loads(theirs.recv(_LENGTH.unpack(length)[0], socket.MSG_WAITALL))
    _take(files, asked["numbers"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.orig_argv, sys.argv = asked["words"], asked["words"][3:]
    sys.modules.pop(sys.argv[0])
    return True


class _Ready(subprocess.Popen[bytes]):
    """The process that waits, where it still does, or one that starts by itself."""

    def __init__(self, waiting: list[tuple[int, socket.socket]], *words: Any, **named: Any) -> None:
        self._waiting = waiting
        super().__init__(*words, **named)

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        """Take the place of the fork and exec in `subprocess` (CPython 3.11 to 3.14)."""
        if not self._waiting:
            super()._execute_child(args, *others)  # type: ignore[misc]
            return
        process, connection = self._waiting.pop()
        _, _, _, passed_on, _, environment, _, _, _, stdin, *_ = others
        with connection:
            _send(connection, args, environment, {0: stdin, **dict(zip(passed_on, passed_on, strict=True))})
        self.pid, self._child_created = process, True
        self._close_pipe_fds(*others[9:15])  # type: ignore[attr-defined]


def _send(
    connection: socket.socket, words: Sequence[str], environment: Mapping[str, str], files: Mapping[int, int]
) -> None:
    message = json.dumps({"words": words, "environment": dict(environment), "numbers": [*files]}).encode()
    socket.send_fds(connection, [_LENGTH.pack(len(message))], [*files.values()])
    connection.sendall(message)


def _take(files: Sequence[int], numbers: Sequence[int]) -> None:
    """Have the files under the numbers that they are said to have."""
    apart = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _BEYOND) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(apart, numbers, strict=True):
        os.dup2(file, number)
        os.close(file)
