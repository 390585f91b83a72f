"""The environment of the command: no telemetry, no network for prices, a patient start, no warnings of libraries."""

import os
import sys
import warnings

DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "GX_ANALYTICS_ENABLED": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    # A temporary server on a fresh machine needs longer than the twenty seconds it is given by default.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # Errors reach the user as one line of the command; the full log is in the flow run.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
}
DEFAULT_LAKE = "./lake"


def prepare() -> None:
    """Set what is not set already. Must run before Prefect or LiteLLM is imported."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    if not sys.warnoptions:  # a user cannot mend what one library has to say of another
        warnings.simplefilter("ignore")
