"""Runs the benchmarks named on the command line, or all, and holds what they measured to its bounds."""

import json
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Measure, say

# Each is a module of this package that prints its measures; add one here, and it is run.
BENCHMARKS = ("planning", "landing", "rerun", "throughput", "workers", "memory", "kills", "judged", "items")

# What runs only where it is named: nothing of speed, and a quarter of an hour.
NAMED = ("coverage",)

WIDTHS = (46, 12, 12, 6)


def main(names: list[str]) -> int:
    """Run them one after the other; 0 where every bound is kept, 1 where one is missed, 2 for an unknown name."""
    if unknown := [name for name in names if name not in (*BENCHMARKS, *NAMED)]:
        say(f"there is no benchmark {unknown[0]}; there are {', '.join((*BENCHMARKS, *NAMED))}")
        return 2
    print(_line("measure", "value", "bound", "", "behind it"), flush=True)
    kept = True
    for name in names or BENCHMARKS:
        for line, good in _lines(name):
            kept &= good
            print(line, flush=True)
    return 0 if kept else 1


def _lines(name: str) -> Iterator[tuple[str, bool]]:
    """The lines of one benchmark's measures, and whether each keeps its bound."""
    done = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        yield _line(name, "", "", "FAILED", f"exit code {done.returncode}"), False
        return
    for fields in json.loads(done.stdout.splitlines()[-1]):
        measure = Measure(**fields)
        bound = f"{'>=' if measure.at_least else '<='} {measure.bound:,g}"
        verdict = "ok" if measure.kept else "MISSED"
        yield _line(measure.name, f"{measure.value:,.4g} {measure.unit}", bound, verdict, measure.behind), measure.kept


def _line(*cells: str) -> str:
    *narrow, last = cells
    return "  ".join([cell.ljust(width) for cell, width in zip(narrow, WIDTHS, strict=True)] + [last]).rstrip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
