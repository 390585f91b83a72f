"""What runs: one module per flow, the only place that decides order."""

import atexit
import gc
import sys

from tasks.runtime.logs import redact_logs
from tasks.runtime.prefect_log import show_in_prefect

redact_logs()  # before Prefect says its first word about a run
show_in_prefect()


def _spare_the_last_collection() -> None:
    """Have the interpreter, as it ends, not look for garbage in all that it has loaded.

    That takes seconds, in which a cancelled run's process is still there; what has to be sent and written is sent and
    written by then. DuckDB's binding writes to standard error of what was not collected, so there it is.
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()


atexit.register(_spare_the_last_collection)
