"""The environment of the command: without settings of the working directory, telemetry and warnings."""

import os
import secrets
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

from evalake.cli.terminal import end_on_ctrl_c, exit_if_interrupted
from evalake.core.prefect_settings import PROFILES, ignore_working_directory, prefect_home, prefect_setting

if TYPE_CHECKING:
    from evalake.server.local.server import TemporaryServer

DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "GX_ANALYTICS_ENABLED": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONSAFEPATH": "1",  # child processes import nothing from the working directory
    # Return freed memory of Polars and deltalake soon, by a thread that does not wait for the next allocation: else a
    # run of hundreds of thousands of rows keeps a quarter more. At once would take twice the processor time
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:100,muzzy_decay_ms:0,background_thread:true",
    # A temporary server on a fresh machine needs more than the default of twenty seconds
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # The command prints errors as one line; the flow run has the full log
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
}

_PASSWORD, _SERVER_PASSWORD = "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"
_ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"


def prepare() -> None:
    """Set the unset variables. Call it before Prefect or LiteLLM is imported."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    ignore_working_directory()
    os.environ.setdefault(PROFILES, str(prefect_home() / "profiles.toml"))
    if not names_a_server():
        lock_server()
    if not sys.warnoptions:  # warnings of one library about another
        warnings.simplefilter("ignore")


def names_a_server() -> bool:
    """Tell whether the environment or Prefect's active profile names a Prefect server."""
    return bool(prefect_setting("PREFECT_API_URL"))


@cache
def lock_server() -> str | None:
    """Set a password, shared with child processes, and refuse other origins, for every server that this command starts.

    By default, Prefect has no password and allows every origin: any page in a browser on this machine could then
    read stored secrets, and run commands by a worker.

    Returns:
        The new password; None where one was set.
    """
    chosen = prefect_setting(_SERVER_PASSWORD) or prefect_setting(_PASSWORD)
    password = chosen or f"evalake:{secrets.token_urlsafe(32)}"
    os.environ[_SERVER_PASSWORD] = password
    for name, value in ((_PASSWORD, password), (_ORIGINS, "https://nobody.invalid")):
        os.environ[name] = prefect_setting(name) or value
    return None if chosen else password


# Prepares this process for the flows that a command runs in it.


def start_server() -> "TemporaryServer | None":
    """Start a Prefect server in the background, where none is named; raises ServerError where it could keep nothing."""
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
