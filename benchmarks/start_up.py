"""Start-up: how long the shortest commands take, from their start to their exit."""

import sys
from pathlib import Path
from statistics import median

from benchmarks.material import fill
from benchmarks.measure import Measure, report
from benchmarks.place import alone, command, folder
from evalake.storage.lake import Lake

ROUNDS = 5
ROWS = 10_000
COMMANDS = {"evalake --help": (["--help"], 0.3), 'evalake sql "select 1"': (["sql", "select 1", "--lake", "lake"], 1.0)}


def main() -> None:
    """Time the commands in turns with a Python that does nothing, and report the medians."""
    program = str(Path(sys.executable).with_name("evalake"))
    words = {name: [program, *arguments] for name, (arguments, _) in COMMANDS.items()}
    words["python"] = [sys.executable, "-c", "pass"]
    taken: dict[str, list[float]] = {name: [] for name in words}
    with folder() as place:
        fill(Lake(str(place / "lake")), ROWS)
        for _ in range(ROUNDS):
            for name, each in words.items():
                taken[name].append(command(each, place, alone(place)).seconds)
    seconds = {name: median(times) for name, times in taken.items()}
    behind = f"median of {ROUNDS}; a Python that does nothing {seconds['python'] * 1000:.0f} ms"
    report([Measure(name, seconds[name], bound, False, "s", behind) for name, (_, bound) in COMMANDS.items()])


if __name__ == "__main__":
    main()
