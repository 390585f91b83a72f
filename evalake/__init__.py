"""evalake from Python: open a lake, run a suite, read what is there as Polars frames.

import evalake

lake = evalake.open("./lake")
run = lake.run("SUITE", limit=50)
run.metrics()
lake.sql("select * from runs")
"""

from core.errors import EvalakeError, UsageError
from evalake.lake import Lake, open_lake
from evalake.run import Run

open = open_lake

__all__ = ["EvalakeError", "Lake", "Run", "UsageError", "open"]
