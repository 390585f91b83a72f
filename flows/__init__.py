"""The flows, which decide the order of steps; flows about one thing share a module."""

if __name__ != "evalake.flows":
    raise ImportError("this folder is installed as evalake.flows: import that name")

import atexit
import gc
import sys

from evalake.core.prefect_settings import ignore_working_directory
from evalake.tasks.runtime.logs import redact_logs, show_in_prefect

ignore_working_directory()  # also in the processes of Prefect's worker
redact_logs()  # before Prefect logs anything about a run
show_in_prefect()

# The interpreter's last garbage collection takes four seconds, and every run's process would wait. DuckDB needs it.
atexit.register(lambda: None if "_duckdb" in sys.modules else gc.freeze())
