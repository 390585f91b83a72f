"""A supervised process: started again when it crashes, with the same listening socket, and ended with this process."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from service.lifeline import GRACE_SECONDS, READY

SETTLED_SECONDS = 30.0  # a process that reports nothing and dies sooner would only die again


class Supervised:
    """One `python -m …` in a session of its own, and its successors."""

    _line: socket.socket  # to the process that runs now
    _ready: bool

    def __init__(
        self,
        *words: str,
        environment: Mapping[str, str] | None = None,
        holding: Sequence[socket.socket] = (),
    ) -> None:
        """Start it.

        Args:
            words: The module and its arguments. The module follows its parent (`service.lifeline`).
            environment: Its environment, if not that of this process.
            holding: Listening sockets that it inherits under their numbers: those that it serves, and those of the
                servers that it asks. Nobody else can listen there while it lives.
        """
        self._words, self._environment, self._holding = words, environment, holding
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
        """Whether it runs, or is about to be started again."""
        return self._keeping.is_alive()

    def is_ready(self, within_seconds: float = 0.0) -> bool:
        """Tell whether the process has reported that it accepts requests; waits for that at most so long."""
        with suppress(OSError, ValueError):  # it has ended, or another one begins
            if not self._ready and select.select([self._line], [], [], within_seconds)[0]:
                self._ready = self._line.recv(len(READY)) == READY
        return self._ready

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
                env=self._environment,
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
    """Kill what a process has started and left behind."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)
