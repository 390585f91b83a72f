"""Start-up: how long the shortest commands take, from their start to their exit."""

import compileall
import sys
from pathlib import Path
from statistics import median

from benchmarks.material import fill
from benchmarks.measure import Measure, report
from benchmarks.place import alone, command, folder
from evalake.storage.lake import Lake
from tests.e2e.processes import ROOT

ROUNDS = 5
ROWS = 10_000
COMMANDS = {"evalake --help": ["--help"], 'evalake sql "select 1"': ["sql", "select 1", "--lake", "lake"]}
LIBRARIES = {
    "evalake --help": "import typer, pydantic",
    'evalake sql "select 1"': "import typer, pydantic, polars, pyarrow, deltalake, duckdb",
}
ROOMS = ("contracts", "evalake", "flows", "storage", "tasks")
BOUND = 3.0


def main() -> None:
    """Time the commands in turns with a Python that imports their libraries, and report the medians."""
    for room in ROOMS:  # as `make setup` does: libraries have byte code, too
        compileall.compile_dir(ROOT / room, quiet=1)
    program = str(Path(sys.executable).with_name("evalake"))
    words = {name: [program, *arguments] for name, arguments in COMMANDS.items()}
    words |= {f"{name}: imports": [sys.executable, "-c", text] for name, text in LIBRARIES.items()}
    taken: dict[str, list[float]] = {name: [] for name in words}
    with folder() as place:
        fill(Lake(str(place / "lake")), ROWS)
        for _ in range(ROUNDS):
            for name, each in words.items():
                taken[name].append(command(each, place, alone(place)).seconds)
    seconds = {name: median(times) for name, times in taken.items()}
    measures = []
    for name in COMMANDS:
        whole, imports = seconds[name], seconds[f"{name}: imports"]
        behind = f"{whole:.2f} s, `{LIBRARIES[name]}` {imports:.2f} s; medians of {ROUNDS}"
        measures.append(Measure(name, whole / imports, BOUND, False, "x", behind))
    report(measures)


if __name__ == "__main__":
    main()
