"""evalake from Python: open a lake, run a suite, read what is there as Polars frames.

import evalake

lake = evalake.open("./lake")
run = lake.run("SUITE", limit=50)
run.metrics()
lake.sql("select * from runs")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.errors import EvalakeError, UsageError
    from evalake.lake import Lake
    from evalake.lake import open_lake as open
    from evalake.request import RunRequest
    from evalake.run import Run

__all__ = ["EvalakeError", "Lake", "Run", "RunRequest", "UsageError", "open"]

_HOMES = {
    "EvalakeError": "core.errors",
    "UsageError": "core.errors",
    "Lake": "evalake.lake",
    "Run": "evalake.run",
    "RunRequest": "evalake.request",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: the flows import the request of a run from here, and nothing else."""
    if name == "open":
        return import_module("evalake.lake").open_lake
    if name not in _HOMES:
        raise AttributeError(f"module 'evalake' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
