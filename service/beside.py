"""Processes beside the service: a Prefect server of its own, and a runner. They end with it, however it ends.

A killed process cannot end its children. So each of them runs under a small keeper process, which holds the reading end
of a pipe that only the service writes to: when the service is gone, the pipe ends, and the keeper ends the process.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    import httpx

GRACE_SECONDS = 6.0  # a service has two of them to end, and 20 seconds in all
SETTLED_SECONDS = 30.0  # what dies sooner would only die again
LOOK_SECONDS = 0.2


class Beside:
    """One process beside this one."""

    def __init__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._keeper = subprocess.Popen(
            [sys.executable, "-P", "-m", "service.beside", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            # What ends all that belongs to the service, such as its own keeper or a terminal that is closed, must not
            # end this keeper before it has ended its process.
            start_new_session=True,
        )

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        return self._keeper.poll() is None

    def stop(self) -> None:
        """End the process, first by SIGTERM, then by SIGKILL; returns when it is gone."""
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        self._keeper.wait()


def free_port() -> int:
    """Find a port of the loopback interface that the kernel gives to nobody else for the next minute.

    A connection that its listening side closes first leaves the port in TIME_WAIT: only a server that asks for this
    very port, with SO_REUSEADDR as all servers do, still gets it.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as client:
            listener.accept()[0].close()
            client.recv(1)
        return int(address[1])


def lets_in(url: str, way_in: "httpx.Auth | None" = None, *, trust_env: bool = False) -> bool:
    """Tell whether a server answers, and lets us in; `trust_env`: by way of the environment's proxies."""
    import httpx

    try:
        return httpx.get(url, timeout=5, trust_env=trust_env, auth=way_in, verify=_certificates()).is_success
    except httpx.HTTPError:
        return False


@cache
def _certificates() -> "ssl.SSLContext":
    """Read the certificates of authorities: 20 ms of processor, which each request would take, also without TLS."""
    import httpx

    return httpx.create_ssl_context()


def keep(arguments: Sequence[str]) -> int:
    """Run `python -m …` in a session of its own until the service ends; restart it where it dies, not at its start.

    Returns its exit code where it ended by itself, soon after its start, or where the service has ended.
    """
    for name in (signal.SIGINT, signal.SIGTERM):
        # It ends with the service alone, not by Ctrl-C. What is ignored, the process would ignore, too.
        signal.signal(name, lambda *_: None)
    over = threading.Event()
    threading.Thread(target=_await_end_of_service, args=(over,), daemon=True).start()
    while True:
        began = time.monotonic()
        charge = subprocess.Popen(
            [sys.executable, "-P", "-m", *arguments], stdin=subprocess.DEVNULL, start_new_session=True
        )
        while charge.poll() is None and not over.wait(LOOK_SECONDS):
            pass
        if over.is_set():
            charge.terminate()
            with suppress(subprocess.TimeoutExpired):
                charge.wait(GRACE_SECONDS)
        with suppress(ProcessLookupError):  # what the process has started and left behind
            os.killpg(charge.pid, signal.SIGKILL)
        if over.is_set() or time.monotonic() - began < SETTLED_SECONDS:
            return charge.wait()


def _await_end_of_service(over: threading.Event) -> None:
    while os.read(0, 1):  # not a buffered reader, whose lock the interpreter would wait for at its end
        pass
    over.set()


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1:]))
