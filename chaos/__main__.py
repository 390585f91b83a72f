"""Runs the campaigns named on the command line, or all, each within its time, and writes the table of what held.

All of them write their rows of the table in docs/reliability.md, each when it has ended. Those that are named do so
with `--write`, and the rows of the others stay.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from chaos.outcome import Outcome
from chaos.summary import Took, summary, told
from chaos.table import written

# Each is a module of this package, with the seconds in which it injects. To begin and to end takes each some more.
CAMPAIGNS: Mapping[str, int] = {
    "torn_files": 30,
    "surroundings": 20,
    "object_store": 45,
    "histories": 30,
    "storms": 20,
    "fuzz": 60,
    "batch_jobs": 300,
    "processes": 540,
    "load": 300,
}
LONGEST = 1500  # seconds, of all together
MARGIN = 240  # seconds that a campaign may take beyond those in which it injects
PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"


def main(arguments: Sequence[str]) -> int:
    """Run the campaigns one after the other; return 0 where all held, 1 where something did not."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("campaigns", nargs="*", default=list(CAMPAIGNS), metavar="CAMPAIGN", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, default=1, help="of all that is drawn")
    parser.add_argument("--write", action="store_true", help="write the rows of the campaigns that are named, too")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the lakes and logs of one campaign there")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := set(options.campaigns) - CAMPAIGNS.keys():
        parser.error(f"there is no campaign {min(unknown)}; there are {', '.join(CAMPAIGNS)}")
    if options.keep and len(options.campaigns) > 1:
        parser.error("--keep is for one campaign")
    if options.alone:
        return _inject(options.campaigns[0], options.seed, options.keep)
    until, took = time.monotonic() + LONGEST, list[Took]()
    for number, name in enumerate(options.campaigns):
        load, began = os.getloadavg()[0], time.monotonic()
        later = sum(CAMPAIGNS[each] for each in options.campaigns[number + 1 :])
        outcomes = list(_bounded(name, options.seed, until - later, options.keep))
        took.append(Took(name, time.monotonic() - began, outcomes))
        print(told(took[-1]), flush=True)
        if options.write or set(options.campaigns) == CAMPAIGNS.keys():
            machine = f"{os.cpu_count()} cores, load {load:.0f} before"
            drawn = f"seed {options.seed}, {datetime.now(UTC):%Y-%m-%d}, {machine}, {took[-1].seconds:.0f} s"
            text = written(PAGE.read_text(encoding="utf-8"), list(CAMPAIGNS), name, outcomes, drawn)
            PAGE.write_text(text, encoding="utf-8")
    print(summary(took))
    return 0 if all(each.held for each in took) else 1


def _inject(name: str, seed: int, keep: Path | None) -> int:
    campaign: Callable[[Path, int, float], Iterator[Outcome]] = import_module(f"chaos.{name}").campaign
    if keep is not None:
        keep.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="chaos-") if keep is None else nullcontext(str(keep)) as folder:
        for outcome in campaign(Path(folder), seed, CAMPAIGNS[name]):
            print(json.dumps(asdict(outcome)), flush=True)
    return 0


def _bounded(name: str, seed: int, until: float, keep: Path | None) -> Iterator[Outcome]:
    """Run a campaign in a process group of its own, which is killed as a whole when the time for all is over."""
    began = time.monotonic()
    longest = min(until - began, CAMPAIGNS[name] + MARGIN)
    if longest <= 0:
        yield Outcome(name, 0, "", "there was no time left for it")
        return
    process = subprocess.Popen(
        [sys.executable, "-m", "chaos", name, "--seed", str(seed), "--alone", *(["--keep", str(keep)] if keep else [])],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=longest)
        broken = f"it ended with exit code {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        _end_all(process)
        printed, _ = process.communicate()  # what it had come to before
        broken = f"it did not end within {longest:.0f} s"
    except BaseException:
        _end_all(process)
        raise
    yield from (Outcome(**json.loads(line)) for line in printed.splitlines() if line.startswith('{"fault"'))
    if broken:
        yield Outcome(name, 0, "", broken)


def _end_all(process: "subprocess.Popen[str]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
