"""Histories of writers, readers and maintenance at once, some of whom are killed: does one order explain them?

The ledger and landing promise what a register that is written once promises: what was read of a key is read by everyone
who begins later, and what was acknowledged is read by everyone who begins after that.
"""

import json
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import polars as pl

from chaos.outcome import Outcome
from evalake.contracts.tables import CALLS
from evalake.core.errors import LakeError
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import LedgerIndex
from evalake.storage.maintenance import maintain
from tests.integration.storage.rows import TOYS, call, key_of, toy
from tests.processes import process_context

CLIENTS = 5
KEYS = 6
OPERATIONS = 12  # of a client, in one history
KINDS = ("append", "append", "read", "read", "land", "see", "maintenance")


@dataclass(frozen=True)
class Operation:
    """A client's operation and its answer. `ended` and `told` are None where the client got no answer.

    append, land  `value` is written under `key`; `told` has no meaning
    read, see     `told` is the value under `key`, "" where there is none
    """

    client: int
    kind: str
    key: int
    value: str
    began: float
    ended: float | None = None
    told: str | None = None


def contradictions(history: Sequence[Operation]) -> Iterator[str]:
    """Yield what no order of a history's operations explains. Each key is checked alone: keys are independent.

    A key is written once: whichever write comes first decides. So an order exists if and only if all reads of a value
    agree, it was written by a client that had begun by then, no read that begins after a value was seen or a write was
    acknowledged finds nothing, and no other write was acknowledged before the one that decided began.
    """
    writes, reads = ("append", "read"), ("land", "see")
    for write, read in (writes, reads):
        for key in sorted({each.key for each in history if each.kind in (write, read)}):
            mine = [each for each in history if each.key == key]
            written = [each for each in mine if each.kind == write]
            seen = [each for each in mine if each.kind == read and each.ended is not None]
            yield from (f"{read} of {key}: {problem}" for problem in _of_one(written, seen))


def _of_one(written: Sequence[Operation], seen: Sequence[Operation]) -> Iterator[str]:
    values = {each.told for each in seen if each.told}
    if len(values) > 1:
        yield f"{len(values)} values were read: {sorted(map(str, values))}"
        return
    known = [each.ended for each in (*written, *(read for read in seen if read.told)) if each.ended is not None]
    there = min(known, default=None)
    if there is not None and (late := [each for each in seen if not each.told and each.began > there]):
        yield f"nothing was read {late[0].began - there:.3f} s after it was there"
    if not values:
        return
    (value,) = values
    deciding = [each for each in written if each.value == value]
    if not deciding or min(each.began for each in deciding) > min(each.ended or 0.0 for each in seen if each.told):
        yield f"{value} was read before anybody wrote it"
    elif first := [
        each for each in written if each.ended is not None and each.ended < min(other.began for other in deciding)
    ]:
        yield f"{value} was read, but {first[0].value} had been acknowledged before its writing began"


def campaign(folder: Path, seed: int, seconds: float) -> Iterator[Outcome]:
    """Record histories until the time is over; in each, one client is killed at a random moment and one is stopped."""
    chance, until = random.Random(seed), time.monotonic() + seconds
    histories = operations = unacknowledged = 0
    broken: list[str] = []
    while not histories or time.monotonic() < until:
        history = record(folder / str(histories), chance)
        histories, operations = histories + 1, operations + len(history)
        unacknowledged += sum(each.ended is None for each in history)
        broken += contradictions(history)
    held = f"{operations} operations of {CLIENTS} clients at a time, {unacknowledged} of them unanswered, have an order"
    fault = "history of ledger and landing: a client killed, another stopped"
    yield Outcome(fault, 2 * histories, held, "; ".join(broken))


def record(
    folder: Path, chance: random.Random, clients: int = CLIENTS, operations: int = OPERATIONS
) -> list[Operation]:
    """Run clients at once on a new lake; returns the operations of each, and the reads of every key at the end."""
    folder.mkdir()
    lake = Lake(str(folder / "lake"))
    lake.ensure(TOYS)
    lake.ensure(CALLS)
    logs = [folder / f"{client}.jsonl" for client in range(clients)]
    running = [
        process_context().Process(target=act, args=(lake.uri, operations, client, str(chance.random()), log))
        for client, log in enumerate(logs)
    ]
    for process in running:
        process.start()
    victim, stopped = chance.sample(range(clients), 2)
    _wait_for(logs[victim], chance.randrange(1, 2 * operations), running[victim])
    running[victim].kill()
    _send(signal.SIGSTOP, running[stopped])
    others = [process for number, process in enumerate(running) if number not in (victim, stopped)]
    for process in others:
        process.join()
    _send(signal.SIGCONT, running[stopped])
    for process in running:
        process.join()
    last = [_carry_out(lake, clients, kind, key, "") for kind in ("read", "see") for key in range(KEYS)]
    return [*_read(logs), *last]


def _send(number: signal.Signals, process: BaseProcess) -> None:
    assert process.pid is not None, "it was not started"
    with suppress(ProcessLookupError):  # it has ended
        os.kill(process.pid, number)


def _wait_for(log: Path, lines: int, process: BaseProcess) -> None:
    while process.is_alive() and (not log.exists() or log.read_bytes().count(b"\n") < lines):
        time.sleep(0.01)


def _read(logs: Sequence[Path]) -> list[Operation]:
    """Read the operations that were begun, with their ends where known; a client writes a line before and one after."""
    history: list[Operation] = []
    for log in logs:
        lines = log.read_text().split("\n")[:-1] if log.exists() else []
        last: dict[str, Operation] = {line["value"]: Operation(**line) for line in map(json.loads, lines)}
        history += last.values()
    return history


def act(uri: str, operations: int, client: int, seed: str, log: Path) -> None:
    """Carry out random operations, and log each one before it begins and after it has ended."""
    lake, chance = Lake(uri), random.Random(seed)
    with log.open("a", encoding="utf-8", buffering=1) as file:
        for number in range(operations):
            kind, key, value = chance.choice(KINDS), chance.randrange(KEYS), f"{client + 1}{number:03}"
            file.write(json.dumps(asdict(Operation(client, kind, key, value, time.monotonic()))) + "\n")
            file.write(json.dumps(asdict(_carry_out(lake, client, kind, key, value))) + "\n")


def _carry_out(lake: Lake, client: int, kind: str, key: int, value: str) -> Operation:
    began, told = time.monotonic(), ""
    row = call(key, response=value)
    try:
        if kind == "append":
            ledger.append(lake, [row])
        elif kind == "land":
            land(lake, TOYS, pl.DataFrame([toy(str(key), size=float(value))]))
        elif kind == "read":
            found = LedgerIndex.read(lake).fetch([key_of(row)])
            told = str(found[key_of(row)]["response"]) if found else ""
        elif kind == "see":
            sizes = lake.frame(TOYS).filter(pl.col("key") == str(key)).collect()["size"].to_list()
            told = " and ".join(str(int(size)) for size in sizes)
        else:
            maintain(lake, [TOYS, CALLS])
    except LakeError:
        return Operation(client, kind, key, value, began)  # it may have been done, or not
    return Operation(client, kind, key, value, began, time.monotonic(), told)
