"""What a command does before the flows that it runs in its own process begin."""

from cli.interrupt import leave_at_once


def begin_flows() -> None:
    """Require Prefect's server, have Ctrl-C end the process at once, and say to flows that a command calls them.

    Raises ServerError where the server that is named cannot be used.
    """
    from tasks.runtime.server import require_server
    from tasks.runtime.started_by import CALLER, COMMAND_LINE

    require_server()
    leave_at_once()
    CALLER.set(COMMAND_LINE)
