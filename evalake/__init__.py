"""evalake from Python: open a lake, run a suite, read what is there as Polars frames.

import evalake

lake = evalake.open("./lake")
run = lake.run("SUITE", limit=50)
run.metrics()
lake.sql("select * from runs")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from core.errors import EvalakeError, UsageError
from evalake.request import RunRequest

if TYPE_CHECKING:
    from evalake.lake import Lake
    from evalake.lake import open_lake as open
    from evalake.run import Run

__all__ = ["EvalakeError", "Lake", "Run", "RunRequest", "UsageError", "open"]


def __getattr__(name: str) -> Any:
    """Import what opens lakes when it is asked for: flows and commands import the request of a run from here."""
    if name not in ("Lake", "Run", "open"):
        raise AttributeError(f"module 'evalake' has no attribute {name!r}")
    return getattr(import_module("evalake.lake"), "open_lake" if name == "open" else name)
