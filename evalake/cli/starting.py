"""What a command does before the flows that it runs in its own process begin."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from evalake.cli.environment import names_a_server
from evalake.cli.terminal import end_on_ctrl_c, leave_if_interrupted

if TYPE_CHECKING:
    from evalake.server.local.server import TemporaryServer


def start_server() -> "TemporaryServer | None":
    """Start a Prefect server for this command, where none is named: it comes up while the command looks at its work."""
    from evalake.server.local.server import TemporaryServer

    return None if names_a_server() else TemporaryServer()


@contextmanager
def flows_begun(server: "TemporaryServer | None") -> Iterator[None]:
    """Use the command's own server, or the one that is named; Ctrl-C lets calls in flight end; flows know who calls.

    Raises ServerError where the server that is named cannot be used, EvalakeError where the command's does not start.
    """
    from evalake.tasks.runtime.naming import CALLER, COMMAND_LINE
    from evalake.tasks.runtime.server import require_server

    require_server()
    end_on_ctrl_c()
    CALLER.set(COMMAND_LINE)
    with server.in_use() if server else nullcontext():
        try:
            yield
        finally:
            leave_if_interrupted()
