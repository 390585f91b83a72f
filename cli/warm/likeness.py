"""What a caller and a warm process must have in common, or what it asks for would not be done there as it is here.

Libraries read some of the environment when they are imported, which the warm process has done long before.
"""

import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Variables that decide how something is imported, by how their names begin
_READ_AT_IMPORT = (
    "ARROW_",
    "DASK_",
    "EVALAKE_DASK_",
    "EVALAKE_DIRECT_CALLS",
    "EVALAKE_LOG_FORMAT",
    "EVALAKE_TASK_RUNNER",
    "EVALAKE_TELEMETRY",
    "HOME",
    "LANG",
    "LC_",
    "LD_",
    "LITELLM_",
    "MALLOC_",
    "MKL_",
    "OMP_",
    "OPENBLAS_",
    "OTEL_",
    "POLARS_",
    "PREFECT_",
    "PYTHON",
    "RAYON_",
    "REQUESTS_",
    "RUST_",
    "SSL_",
    "TMPDIR",
    "TOKIO_",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "_RJEM_",
)
_OF_ONE_FLOW_RUN = "PREFECT__"  # how the names of what a worker tells each flow run begin
# Each command has its own, or they are those of the servers of `evalake up`, which both use.
_OF_ONE_COMMAND = frozenset(
    {
        "PREFECT_API_AUTH_STRING",
        "PREFECT_API_URL",
        "PREFECT_SERVER_API_AUTH_STRING",
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS",
    }
)


def likeness() -> dict[str, Any]:
    """Describe, as JSON values, what a caller's process and the warm process must have in common."""
    return {
        "python": [sys.prefix, sys.version, sys._xoptions, list(sys.warnoptions), sys.flags.optimize],
        "evalake": str(Path(__file__).resolve().parents[2]),
        "environment": dict(sorted(read_at_import(os.environ).items())),
        "limits": [list(resource.getrlimit(limit)) for limit in sorted(_limits().values())],
        "processors": sorted(os.sched_getaffinity(0)),
        "niceness": os.nice(0),
    }


def read_at_import(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment can decide how libraries are imported."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_READ_AT_IMPORT) or name.lower().endswith("_proxy")
        if name not in _OF_ONE_COMMAND and not name.startswith(_OF_ONE_FLOW_RUN)
    }


def _limits() -> Mapping[str, int]:
    return {name: value for name, value in vars(resource).items() if name.startswith("RLIMIT_")}
