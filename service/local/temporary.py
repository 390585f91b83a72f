"""A Prefect server for one command: begun at once, so that it starts while the command looks at what it has to do."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import EvalakeError

WAIT_SECONDS = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"


class TemporaryServer:
    """A server that ends when this process has ended, after the last of its logs and events; nothing waits for that."""

    def __init__(self) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            self._url = f"http://127.0.0.1:{listener.getsockname()[1]}/api"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", "service.local.server", str(listener.fileno())],
                stdin=subprocess.PIPE,  # which ends when this process does
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                start_new_session=True,  # Ctrl-C is for the command
            )

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
        import httpx

        seconds = float(os.environ[WAIT_SECONDS])
        try:
            # Without TLS no certificates are needed; reading them takes 20 ms of processor.
            httpx.get(f"{self._url}/health", timeout=seconds, trust_env=False, verify=False).raise_for_status()
        except httpx.TimeoutException as error:
            raise EvalakeError(
                f"the temporary Prefect server took longer than {seconds:g} s to start: {WAIT_SECONDS} gives it more"
            ) from error
        except httpx.HTTPError as error:
            raise EvalakeError("the temporary Prefect server did not start: its messages are above") from error
