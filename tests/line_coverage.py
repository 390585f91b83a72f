"""Which share of our lines the tests run, by room, against the floors that are set here.

`make line-coverage` reads what slipcover noted while `make test` ran, in the tests' own processes. The processes that
tests start, like workers and services, are not looked into: tests run more of cli, flows and server than it says.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

FLOOR = 90.0
WHOLE = (
    "flows/score_session.py",
    "evalake/suites/command_guard/replies.py",
    "evalake/suites/session_review/replies.py",
    "evalake/suites/session_review/score.py",
    "evalake/suites/solidity_audit/replies.py",
    "evalake/sdk/lenient_json.py",
    "tasks/runtime/runs.py",
)
"""Files that read a score out of a reply, or through which runs and scorings change states: no line may be left out."""


class Lines(NamedTuple):
    """How many lines were run, and the numbers of those that were not."""

    run: int
    missed: tuple[int, ...]


def read(file: Path) -> dict[str, Lines]:
    """The lines of each file that slipcover measured."""
    measured = json.loads(file.read_text(encoding="utf-8"))["files"]
    return {name: Lines(len(of["executed_lines"]), tuple(of["missing_lines"])) for name, of in measured.items()}


def share(lines: Sequence[Lines]) -> float:
    """The share that was run, in percent; 100 of nothing."""
    run, missed = sum(each.run for each in lines), sum(len(each.missed) for each in lines)
    return 100.0 * run / (run + missed) if run + missed else 100.0


def report(files: Mapping[str, Lines]) -> list[str]:
    """What is printed: the share of each room, the files of which most is missed, and the whole."""
    rooms: dict[str, list[Lines]] = defaultdict(list)
    for name, lines in files.items():
        rooms[name.partition("/")[0]].append(lines)
    least = sorted(files, key=lambda name: -len(files[name].missed))[:15]
    return [
        "Line coverage by room, of the tests' own processes:",
        *(f"  {room:<12}{share(of):6.1f} %" for room, of in sorted(rooms.items())),
        "Most lines missed:",
        *(f"  {len(files[name].missed):4}  {share([files[name]]):5.1f} %  {name}" for name in least),
        f"Whole: {share([*files.values()]):.1f} %, at least {FLOOR:.0f} % is asked for",
    ]


def complaints(files: Mapping[str, Lines]) -> list[str]:
    """What falls short."""
    whole = share([*files.values()])
    wrong = [f"{whole:.1f} % of all lines are run, not {FLOOR:.0f} %"] if whole < FLOOR else []
    for name in WHOLE:
        if name not in files:
            wrong.append(f"{name} was not measured")
        elif missed := files[name].missed:
            wrong.append(f"{name}: no test runs the lines {', '.join(map(str, missed))}")
    return wrong


def main() -> int:
    """Print the report of the file that is named; 1 where something falls short."""
    files = read(Path(sys.argv[1]))
    wrong = complaints(files)
    sys.stdout.write("\n".join([*report(files), *wrong]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
