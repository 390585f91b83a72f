"""The environment of the command: nothing of the working directory, no telemetry, a long start timeout, no warnings."""

import os
import secrets
import sys
import warnings
from functools import cache

from evalake.core.prefect_settings import PROFILES, ignore_working_directory, prefect_home, prefect_setting

DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "GX_ANALYTICS_ENABLED": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONSAFEPATH": "1",  # a Python that is started imports nothing from the working directory
    # Polars and deltalake keep memory that they do not use any more, so as to use it again later; at the end of a
    # run of hundreds of thousands of rows that was a quarter of all memory.
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0",
    # A temporary server on a fresh machine needs longer than the twenty seconds it is given by default.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # Errors reach the user as one line of the command; the full log is in the flow run.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
}

_PASSWORD, _SERVER_PASSWORD = "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"
_ORIGINS = "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"


def prepare() -> None:
    """Set the variables that are not set already. Must run before Prefect or LiteLLM is imported."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    ignore_working_directory()
    os.environ.setdefault(PROFILES, str(prefect_home() / "profiles.toml"))
    if not names_a_server():
        lock_server()
    if not sys.warnoptions:  # a user cannot mend what one library warns of in another
        warnings.simplefilter("ignore")


def names_a_server() -> bool:
    """Tell whether the environment, or Prefect's active profile, names a Prefect server that runs already."""
    return bool(prefect_setting("PREFECT_API_URL"))


@cache
def lock_server() -> str | None:
    """Give every server that this command starts a password, shared with the processes it starts, and no other origin.

    Prefect's own defaults are no password and every origin: any page that a browser on this machine shows could then
    read stored secrets, and have a worker run commands.

    Returns:
        The password where none was set, and it was made here.
    """
    chosen = prefect_setting(_SERVER_PASSWORD) or prefect_setting(_PASSWORD)
    password = chosen or f"evalake:{secrets.token_urlsafe(32)}"
    os.environ[_SERVER_PASSWORD] = password
    for name, value in ((_PASSWORD, password), (_ORIGINS, "https://nobody.invalid")):
        os.environ[name] = prefect_setting(name) or value
    return None if chosen else password
