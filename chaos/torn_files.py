"""Files of a lake that are cut off, torn, emptied or gone: found by `check`, refused, or of no consequence."""

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, product
from pathlib import Path

from chaos.every_table import lake_of_every_table
from chaos.outcome import Outcome
from evalake.admin.check import check_lake
from evalake.contracts.contract import Contract
from evalake.storage.lake import Lake
from evalake.suites.registry import all_contracts


def _cut(file: Path, chance: random.Random) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: chance.randrange(len(content))])


def _zero(file: Path, chance: random.Random) -> None:
    """Overwrite a part with zeros, as a power cut leaves a block that was allocated and not written."""
    content = bytearray(file.read_bytes())
    begin = chance.randrange(len(content))
    end = min(len(content), begin + 4096)
    content[begin:end] = bytes(end - begin)
    file.write_bytes(content)


def _delete(file: Path, _: random.Random) -> None:
    file.unlink()


FAULTS: Mapping[str, Callable[[Path, random.Random], None]] = {
    "cut off": _cut,
    "partly zeros": _zero,
    "deleted": _delete,
}


def campaign(folder: Path, seed: int, seconds: float) -> Iterator[Outcome]:
    """Damage one file of a lake's copy at a time, and see what `check` and a reader find; each kind once at least."""
    chance = random.Random(seed)
    whole = lake_of_every_table(folder)
    tables = {contract.table: contract for contract in all_contracts() if whole.exists(contract)}
    before = {name: _rows(whole, contract) for name, contract in tables.items()}
    root = Path(whole.uri)
    files = sorted(file.relative_to(root) for file in root.rglob("*") if file.is_file())
    log = [file for file in files if "_delta_log" in file.parts]
    data = [file for file in files if file not in set(log)]
    ends, broken = dict[str, Counter[str]](), dict[str, list[str]]()
    until, kinds = time.monotonic() + seconds, tuple(product((("log entry", log), ("data file", data)), FAULTS.items()))
    order = list(
        enumerate(chance.sample(sorted(tables), len(tables)))
    )  # each table soon, and with every kind in the end
    every = [(table, kinds[(place + turn) % len(kinds)]) for turn in range(len(kinds)) for place, table in order]
    for number, (table, ((what, of_all), (how, damage))) in enumerate(cycle(every)):
        if number >= len(kinds) and time.monotonic() > until:
            break
        choice = [file for file in of_all if file.parts[0] == table]
        file, copy = chance.choice(choice), Lake(str(folder / "copy"))
        shutil.copytree(root, copy.uri)
        damage(Path(copy.uri) / file, chance)
        end = _end(copy, tables[table], before[table])
        if end == UNSEEN and how == "deleted" and file == _newest_entry(log, table):
            end = AS_BEFORE
        ends.setdefault(f"{what} {how}", Counter())[end] += 1
        if end == UNSEEN:
            broken.setdefault(f"{what} {how}", []).append(str(file))
        shutil.rmtree(copy.uri)
    for kind, counts in sorted(ends.items()):
        held = ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))
        yield Outcome(f"lake: {kind}", counts.total(), held, "; ".join(broken.get(kind, ())))


FOUND, HARMLESS, UNSEEN = "found by `check`", "without consequence", "neither found nor refused"
# No table can tell the loss of its newest log entry from a commit that never came, if nobody else has seen that one.
AS_BEFORE = "as before the newest commit, which nothing else had seen"


def _end(lake: Lake, contract: Contract, before: frozenset[str]) -> str:
    try:  # before the check, which lands rows in the lake, too
        read, refused = _rows(lake, contract), ""
    except BaseException as error:  # noqa: BLE001 - a panic of the engine is one, too
        read, refused = frozenset[str](), f"refused when read ({type(error).__name__})"
    if any(checked.findings for checked in check_lake(lake, [contract])):
        return FOUND
    return refused or (HARMLESS if read == before else UNSEEN)


def _newest_entry(log: Sequence[Path], table: str) -> Path:
    return max(file for file in log if file.parts[0] == table and file.suffix == ".json")


def _rows(lake: Lake, contract: Contract) -> frozenset[str]:
    return frozenset(map(repr, lake.frame(contract).collect().iter_rows()))
