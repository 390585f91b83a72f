"""Runs the benchmarks named on the command line, or all, and holds what they measured to its bounds."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import Measure, say

# Each is a module of this package that prints its measures; add one here, and it is run.
BENCHMARKS = (
    *("planning", "queries", "writers", "rerun", "throughput", "latency", "workers", "memory", "start_up"),
    *("scoring", "kills", "judged", "items", "readers"),
)

# What runs only where it is named, since it takes a quarter of an hour; the last two are held to no bound of speed.
NAMED = ("peers", "coverage", "scale")

WIDTHS = (46, 12, 12, 7)
FIGURES = Path("build") / "figures.jsonl"  # what every run measured, one line a measure


def main(names: list[str]) -> int:
    """Run the benchmarks in order; return 0 where every bound is kept, 1 where one is missed, 2 for an unknown name."""
    if unknown := [name for name in names if name not in (*BENCHMARKS, *NAMED)]:
        say(f"there is no benchmark {unknown[0]}; there are {', '.join((*BENCHMARKS, *NAMED))}")
        return 2
    print(_line("measure", "value", "bound", "", "behind it"), flush=True)
    kept = True
    for name in names or BENCHMARKS:
        measures = _measures(name)
        if measures is None:
            print(_line(name, "", "", "FAILED", "its messages are above"), flush=True)
        else:
            _keep(name, measures)
            for measure in measures:
                print(_line_of(measure), flush=True)
        kept &= measures is not None and all(measure.kept for measure in measures)
    return 0 if kept else 1


def _measures(name: str) -> list[Measure] | None:
    """Run a benchmark in a process of its own, and return its measures; None where it fails."""
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return None
    return [Measure(**fields) for fields in json.loads(done.stdout.splitlines()[-1])]


def _keep(benchmark: str, measures: Sequence[Measure]) -> None:
    """Add the measures to those of earlier runs, with the time, the revision, and the load of the machine."""
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    occasion = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "revision": revision,
        "load": os.getloadavg(),
        "cores": os.cpu_count(),
        "benchmark": benchmark,
    }
    FIGURES.parent.mkdir(exist_ok=True)
    with FIGURES.open("a") as file:
        for measure in measures:
            file.write(json.dumps({**occasion, **asdict(measure), "kept": measure.kept}) + "\n")


def _line_of(measure: Measure) -> str:
    bound = f"{'>=' if measure.at_least else '<='} {measure.bound:,g}"
    value = "" if measure.value is None else f"{measure.value:,.4g} {measure.unit}"
    return _line(measure.name, value, bound, measure.verdict, measure.behind)


def _line(*cells: str) -> str:
    *narrow, last = cells
    return "  ".join([cell.ljust(width) for cell, width in zip(narrow, WIDTHS, strict=True)] + [last]).rstrip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
