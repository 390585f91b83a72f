"""A Prefect server for one command: begun at once, so that it starts while the command looks at what it has to do."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import EvalakeError
from service.sockets import address_of, listen
from service.supervised import Supervised

WAIT_SECONDS = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"


class TemporaryServer:
    """A server that ends when this process has ended, after the last of its logs and events; nothing waits for that."""

    def __init__(self) -> None:
        self._listener = listen("127.0.0.1", 0)  # kept, so that nobody else can listen there if the server crashes
        self._url = f"{address_of(self._listener)}/api"
        words = ("service.local.server", str(self._listener.fileno()), "--temporary")
        self._server = Supervised(*words, holding=[self._listener])

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._server.pid

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Have Prefect use this server, here and in processes that are started meanwhile.

        Raises EvalakeError where it does not start.
        """
        from prefect.settings import PREFECT_API_URL, temporary_settings

        self._wait()
        os.environ["PREFECT_API_URL"] = self._url
        try:
            with temporary_settings({PREFECT_API_URL: self._url}):
                yield
        finally:
            del os.environ["PREFECT_API_URL"]

    def _wait(self) -> None:
        seconds = float(os.environ[WAIT_SECONDS])
        deadline = time.monotonic() + seconds
        while not self._server.is_ready(within_seconds=0.1):
            if not self._server.is_running:
                raise EvalakeError("the temporary Prefect server did not start: its messages are above")
            if time.monotonic() > deadline:
                raise EvalakeError(
                    f"the temporary Prefect server took longer than {seconds:g} s to start: "
                    f"{WAIT_SECONDS} gives it more"
                )
