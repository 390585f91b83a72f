"""What runs: one module per flow, the only place that decides order."""

if __name__ != "evalake.flows":
    raise ImportError("this folder is installed as evalake.flows: import that name")

import atexit
import gc
import sys

from evalake.core.prefect_settings import ignore_working_directory
from evalake.tasks.runtime.logs import redact_logs, show_in_prefect

ignore_working_directory()  # from here on, also in a process of Prefect's worker
redact_logs()  # before Prefect logs anything about a run
show_in_prefect()


def _spare_the_last_collection() -> None:
    """Stop the interpreter from looking for garbage in everything that it has loaded, as it ends.

    That takes seconds, in which a cancelled run's process is still there; what has to be sent and written is sent and
    written by then. Where DuckDB is loaded, garbage is collected, or its binding would complain on standard error.
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()


atexit.register(_spare_the_last_collection)
