"""What is around a writer changes: the disk fills up, becomes read-only, is closed to it, or its clock moves."""

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from chaos.outcome import Outcome
from chaos.writer import row_of
from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS
from evalake.storage.integrity import find_tampering, inspect
from evalake.storage.lake import Lake
from evalake.storage.ledger import KEY
from evalake.suites.registry import all_contracts

DISK = "size=32m"
DAY = 86_400
CLOCKS = (DAY, -DAY, 40 * DAY, -400 * DAY)


@dataclass
class Seen:
    """How often a fault was injected, and the commits refused, rows promised and problems found with it."""

    injected: int = 0
    refused: int = 0
    rows: int = 0
    broken: list[str] = field(default_factory=list)


class Writer:
    """A process of `chaos.writer`, which is bound by the modes of files even where it runs as root."""

    def __init__(
        self, lake: Path, log: Path, contracts: Sequence[Contract], environment: Mapping[str, str] | None = None
    ) -> None:
        bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
        self._log = log.open("a", encoding="utf-8")
        self._process = subprocess.Popen(
            [*bound, sys.executable, "-m", "chaos.writer", str(lake), *(contract.table for contract in contracts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.contracts = contracts
        self.promised: set[tuple[str, int]] = set()  # a table, and the round in which a row of it was acknowledged

    def round(self, order: str = "write") -> list[str]:
        """Order a round of commits; returns the sentences with which commits were refused."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        refused: list[Any] = []
        for line in self._process.stdout:
            said = json.loads(line)
            if "round" in said:
                return refused
            if "landed" in said:
                self.promised.add((said["table"], said["landed"]))
            if "refused" in said:
                refused.append(said["refused"])
        raise AssertionError(f"the writer ended with exit code {self._process.wait()}")

    def end(self) -> None:
        """End the process, and close its log."""
        with suppress(BrokenPipeError):
            self._process.communicate()
        self._log.close()


def campaign(folder: Path, seed: int, seconds: float, contracts: Sequence[Contract] | None = None) -> Iterator[Outcome]:
    """Change one thing at a time while a writer writes; each once at least. Afterwards it goes on in the same lake.

    It writes to the tables of these contracts, to all that there are where none are given.
    """
    chance, contracts = random.Random(seed), contracts or all_contracts()
    until = time.monotonic() + seconds
    with _disk(folder) as disk, _clock(folder) as clock:
        faults: dict[str, Callable[[Path], Iterator[None]]] = {"permissions taken away": _closed}
        if disk is not None:
            faults |= {"disk full": _full, "disk read-only": _read_only}
        place = disk or folder
        seen = {name: Seen() for name in faults}
        for number, (name, fault) in enumerate(cycle(faults.items())):
            if number >= len(faults) and time.monotonic() > until - seconds / 2:
                break
            lake = place / str(number)
            writer = Writer(lake, folder / "writer.log", contracts)
            _inject(lake, writer, seen[name], contextmanager(fault)(lake))
        if clock is not None:
            moved = seen["clock moved back and forward"] = Seen()
            while not moved.injected or time.monotonic() < until:
                lake = folder / f"clock {moved.injected}"
                _move(lake, Writer(lake, folder / "writer.log", contracts, clock), moved, clock, chance)
    for name, each in seen.items():
        rows = f"{each.rows} rows of {len(contracts)} tables once each"
        held = f"{rows}, `check` finds nothing, writing goes on; {each.refused} commits refused"
        yield Outcome(f"lake: {name}", each.injected, held, "; ".join(each.broken))
    if disk is None:
        yield Outcome("lake: disk full, disk read-only", 0, "not injected: only root may mount a small disk")
    if clock is None:
        yield Outcome("lake: clock moved back and forward", 0, "not injected: there is no C compiler for a wrong clock")


def _inject(lake: Path, writer: Writer, seen: Seen, fault: AbstractContextManager[None]) -> None:
    try:
        sound = writer.round()
        with fault:
            seen.injected += 1
            refused = writer.round()
            refused_maintenance = writer.round("maintenance")
        sound += writer.round("maintenance")
    finally:
        writer.end()
    seen.refused += len(refused)
    if not refused:
        seen.broken.append("no commit was refused")
    said = refused + refused_maintenance
    seen.broken += [f"no sentence: {each[:80]}" for each in said if "Traceback" in each or "\n" in each]
    seen.broken += [f"refused before or afterwards: {each}" for each in sound]
    seen.broken += _wrong(Lake(str(lake)), writer)
    seen.rows += len(writer.promised)
    shutil.rmtree(lake)


def _move(lake: Path, writer: Writer, seen: Seen, clock: Mapping[str, str], chance: random.Random) -> None:
    try:
        writer.round()
        for wrong_by in chance.sample(CLOCKS, len(CLOCKS)):
            Path(clock["CLOCK_FILE"]).write_text(str(wrong_by))
            seen.injected += 1
            seen.broken += writer.round(chance.choice(["write", "maintenance"]))
        Path(clock["CLOCK_FILE"]).write_text("0")
        seen.broken += writer.round("maintenance")
    finally:
        Path(clock["CLOCK_FILE"]).write_text("0")
        writer.end()
    seen.broken += _wrong(Lake(str(lake)), writer)
    seen.rows += len(writer.promised)


def _wrong(lake: Lake, writer: Writer) -> list[str]:
    """List how the tables differ from what the writer was promised."""
    return [problem for contract in writer.contracts for problem in _wrong_with(lake, contract, writer.promised)]


def _wrong_with(lake: Lake, contract: Contract, promised: set[tuple[str, int]]) -> list[str]:
    if damage := [*inspect(lake, contract).damage, *find_tampering(lake, contract)]:
        return [f"{contract.table}: {finding.problem}" for finding in damage]
    key = KEY if contract is CALLS else contract.key
    rows = lake.frame(contract).select(key).collect()
    landed = {
        tuple(row_of(contract, number)[column] for column in key)
        for table, number in promised
        if table == contract.table
    }
    problems = []
    if lost := landed - set(rows.rows()):
        problems.append(f"{len(lost)} rows of {contract.table} are missing: {min(lost)}")
    if rows.height != rows.n_unique():
        problems.append(f"rows of {contract.table} are there twice")
    return problems


def _full(lake: Path) -> Iterator[None]:
    filler = lake.parent / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        filler.unlink()


def _read_only(lake: Path) -> Iterator[None]:
    _mount("-o", "remount,ro", str(lake.parent))
    try:
        yield
    finally:
        _mount("-o", "remount,rw", str(lake.parent))


def _closed(lake: Path) -> Iterator[None]:
    """Take write permission from every folder of the lake; all may still be read."""
    folders = [lake, *(each for each in lake.rglob("*") if each.is_dir())]
    modes = {each: stat.S_IMODE(each.stat().st_mode) for each in folders}
    for each in folders:
        each.chmod(0o555)
    try:
        yield
    finally:
        for each, mode in modes.items():
            each.chmod(mode)


@contextmanager
def _disk(folder: Path) -> Iterator[Path | None]:
    """Mount a disk of 32 MB; None where none can be mounted."""
    (place := folder / "disk").mkdir()
    if os.geteuid() != 0 or not _mount("-t", "tmpfs", "-o", DISK, "none", str(place)):
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], check=False, capture_output=True).returncode == 0


@contextmanager
def _clock(folder: Path) -> Iterator[Mapping[str, str] | None]:
    """Build the environment of a process whose clock is wrong by the seconds in a file; None without a C compiler."""
    if (compiler := shutil.which("cc")) is None:
        yield None
        return
    library, offset = folder / "clock.so", folder / "clock"
    offset.write_text("0")
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    yield {"LD_PRELOAD": str(library), "CLOCK_FILE": str(offset)}
