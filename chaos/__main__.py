"""Runs the campaigns named on the command line, or all, each within its time, and writes the table of what held."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from chaos.outcome import Outcome

# Each is a module of this package, with the seconds in which it injects. To begin and to end takes each some more.
CAMPAIGNS: Mapping[str, int] = {
    "torn_files": 200,
    "surroundings": 40,
    "object_store": 180,
    "histories": 60,
    "storms": 60,
    "fuzz": 100,
    "kills": 300,
    "load": 300,
}
LONGEST = 1500  # seconds, of all together
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"
BEGIN, END = "<!-- written by make chaos -->\n", "<!-- end -->\n"


def main(arguments: Sequence[str]) -> int:
    """Run them one after the other; 0 where all held, 1 where something did not."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("campaigns", nargs="*", default=list(CAMPAIGNS), metavar="CAMPAIGN", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, default=1, help="of all that is drawn")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := set(options.campaigns) - CAMPAIGNS.keys():
        parser.error(f"there is no campaign {min(unknown)}; there are {', '.join(CAMPAIGNS)}")
    if options.alone:
        return _inject(options.campaigns[0], options.seed)
    until = time.monotonic() + LONGEST
    outcomes = [outcome for name in options.campaigns for outcome in _bounded(name, options.seed, until)]
    if set(options.campaigns) == CAMPAIGNS.keys():
        _write(outcomes, options.seed)
    return 1 if any(outcome.broken for outcome in outcomes) else 0


def _inject(name: str, seed: int) -> int:
    campaign: Callable[[Path, int, float], Iterator[Outcome]] = import_module(f"chaos.{name}").campaign
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        for outcome in campaign(Path(folder), seed, CAMPAIGNS[name]):
            print(json.dumps(asdict(outcome)), flush=True)
    return 0


def _bounded(name: str, seed: int, until: float) -> Iterator[Outcome]:
    """Run a campaign in a process group of its own, which is killed as a whole when the time for all is over."""
    began = time.monotonic()
    if began > until:
        yield Outcome(name, 0, "", "there was no time left for it")
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "chaos", name, "--seed", str(seed), "--alone"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=until - began)
        broken = f"it ended with exit code {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        _end_all(process)
        printed, broken = "", f"it did not end within the {LONGEST} s for all"
    except BaseException:
        _end_all(process)
        raise
    outcomes = [Outcome(**json.loads(line)) for line in printed.splitlines() if line.startswith('{"fault"')]
    if broken:
        outcomes.append(Outcome(name, 0, "", broken))
    for outcome in outcomes:
        print(f"{outcome.injected:>5}  {outcome.fault}: {outcome.broken or outcome.held}", flush=True)
        yield outcome
    print(f"       {name} took {time.monotonic() - began:.0f} s", flush=True)


def _end_all(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write(outcomes: Sequence[Outcome], seed: int) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    lines = [f"Seed {seed}, {datetime.now(UTC):%Y-%m-%d}.\n", "| fault | times | what held |", "|---|---|---|"]
    for outcome in outcomes:
        held = f"**not held**: {outcome.broken}" if outcome.broken else outcome.held
        lines.append(f"| {outcome.fault} | {outcome.injected} | {held} |")
    PAGE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
