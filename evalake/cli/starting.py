"""Prepares this process for the flows that a command runs in it."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from evalake.cli.environment import names_a_server
from evalake.cli.terminal import end_on_ctrl_c, exit_if_interrupted

if TYPE_CHECKING:
    from evalake.server.local.server import TemporaryServer


def start_server() -> "TemporaryServer | None":
    """Start a Prefect server in the background, where none is named; raises ServerError where it could keep nothing."""
    from evalake.core.prefect_settings import prefect_home
    from evalake.server.local.server import TemporaryServer
    from evalake.tasks.runtime.server import require_writable

    if names_a_server():
        return None
    require_writable(prefect_home())
    return TemporaryServer()


@contextmanager
def flows_begun(server: "TemporaryServer | None") -> Iterator[None]:
    """Use the command's own server or the named one; Ctrl-C then lets running calls end.

    Raises ServerError where the named server cannot be used, EvalakeError where the command's own does not start.
    """
    from evalake.tasks.runtime.form import CALLER, COMMAND_LINE
    from evalake.tasks.runtime.server import require_server

    require_server()
    end_on_ctrl_c()
    CALLER.set(COMMAND_LINE)
    with server.in_use() if server else nullcontext():
        try:
            yield
        finally:
            exit_if_interrupted()
