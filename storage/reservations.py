"""What processes share: a run's ceiling, of which each reserves a part before it starts calls, and calls to be asked.

The spending of a run is its cost in the ledger, plus the spending that its holders report outside of it. A holder
updates its row only by a commit that directly follows the version in which it read the others' rows, and after its
replies are in the ledger. So spending and reservations together stay below the ceiling.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import polars as pl
from deltalake import DeltaTable

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS
from evalake.contracts.tables.runs import RUN_RESERVATIONS
from evalake.core.files import open_state
from evalake.core.hashing import content_hash
from evalake.storage.lake import Lake
from evalake.storage.landing import NO_RETRIES, begin_merge, commit

Rows = Mapping[str, Mapping[str, Any]]

ROUNDING_USD = 1e-9  # above the rounding error of summed prices


@dataclass(frozen=True, slots=True)
class Amount:
    """Money and calls."""

    usd: float = 0.0
    calls: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.usd + other.usd, self.calls + other.calls)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(self.usd - other.usd, self.calls - other.calls)

    def within(self, other: "Amount") -> bool:
        """Tell whether neither money nor calls exceed those of `other`."""
        return self.usd <= other.usd + ROUNDING_USD and self.calls <= other.calls


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most money and calls that one run may take; None: unlimited."""

    usd: float | None = None
    calls: int | None = None

    def __bool__(self) -> bool:
        return self.usd is not None or self.calls is not None

    def __str__(self) -> str:
        limits = [f"{self.usd:g} USD"] if self.usd is not None else []
        return " and ".join([*limits, *([f"{self.calls} calls"] if self.calls is not None else [])])

    @property
    def amount(self) -> Amount:
        """The ceiling as an amount, with 0 for unlimited."""
        return Amount(self.usd or 0.0, self.calls or 0)

    def of(self, amount: Amount) -> Amount:
        """Keep the parts of an amount that this ceiling limits; the others become 0."""
        return Amount(0.0 if self.usd is None else amount.usd, 0 if self.calls is None else amount.calls)


UNLIMITED = Ceiling()


@dataclass(frozen=True, slots=True)
class BudgetState:
    """The budget of a run as one holder sees it: spending, and the reservations of the other holders."""

    spent: Amount
    others: Mapping[str, Amount]
    heartbeats: Mapping[str, int]  # of the others

    @property
    def held(self) -> Amount:
        """The sum of the others' reservations."""
        return sum(self.others.values(), Amount())


@dataclass(frozen=True, slots=True)
class Reservation:
    """A holder's new reservation, its spending outside the ledger, and the holders that it found dead."""

    reserved: Amount
    outside: Amount
    dead: Collection[str] = ()


def budget_state(lake: Lake, run_id: str, holder: str = "") -> BudgetState:
    """Read the budget state of a run."""
    return _state(lake, run_id, holder, _rows(lake.ensure(RUN_RESERVATIONS), run_id))


def reserve(lake: Lake, run_id: str, holder: str, decide: Callable[[BudgetState], Reservation]) -> BudgetState:
    """Write the reservation that `decide` returns; return the state that it was given.

    Calls `decide` again after a conflict. Raises LakeError where the commit fails.
    """
    table = lake.ensure(RUN_RESERVATIONS)

    def write() -> BudgetState:
        rows = _rows(table, run_id)
        state = _state(lake, run_id, holder, rows)
        decided = _decided(rows, run_id, holder, decide(state))
        merger = begin_merge(table, decided, RUN_RESERVATIONS.key, NO_RETRIES)
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        return state

    return commit(
        write,
        busy=f"the ceiling of the run {run_id} is too busy in the lake {lake.uri}; run again",
        failed=f"cannot write the table {RUN_RESERVATIONS.table}",
        table=table,
    )


def _rows(table: DeltaTable, run_id: str) -> Rows:
    """Read the rows of a run by their holders."""
    rows_of_run = pl.scan_delta(table).filter(pl.col("run_id") == run_id).collect()
    return {row["holder"]: row for row in rows_of_run.iter_rows(named=True)}


def _state(lake: Lake, run_id: str, holder: str, rows: Rows) -> BudgetState:
    """Read the ledger after the rows: a row releases its reservation only after the spending is in the ledger."""
    mine = (pl.col("run_id") == run_id) & (pl.col("origin") == "call")
    asked = lake.frame(CALLS).filter(mine).select(pl.col("cost_usd").sum(), pl.len().alias("calls")).collect()
    outside = sum((Amount(row["outside_usd"], row["outside_calls"]) for row in rows.values()), Amount())
    others = {name: row for name, row in rows.items() if name != holder}
    return BudgetState(
        spent=Amount(asked["cost_usd"].item(), asked["calls"].item()) + outside,
        others={name: Amount(row["reserved_usd"], row["reserved_calls"]) for name, row in others.items()},
        heartbeats={name: row["beat"] for name, row in others.items()},
    )


def _decided(rows: Rows, run_id: str, holder: str, holding: Reservation) -> pl.DataFrame:
    """Build the holder's row with its next heartbeat, and the rows of dead holders without reservations."""
    own = {
        "run_id": run_id,
        "holder": holder,
        "beat": rows[holder]["beat"] + 1 if holder in rows else 1,
        "reserved_usd": max(holding.reserved.usd, 0.0),
        "reserved_calls": holding.reserved.calls,
        "outside_usd": holding.outside.usd,
        "outside_calls": holding.outside.calls,
        "changed_at": datetime.now(UTC),
    }
    freed = [{**rows[name], "reserved_usd": 0.0, "reserved_calls": 0} for name in holding.dead if name in rows]
    return conform([own, *freed], RUN_RESERVATIONS)


# Claims on calls: of a user's processes on a machine, one at a time asks a call, so that none is paid twice.

# A claim is a lock on one byte of a file, at a hash of the call's key. It ends with its process at the latest. The
# file's time says when a claim was last taken or ended, or a claimed call was going on: a process that stands still is
# not waited for without end.


Call = tuple[str, int, str]
"""The key of a call: prompt_hash, replicate and endpoint."""

_PRESENCE = 0  # the byte that every process with claims has locked for reading


class Claims:
    """The claims of this process on the calls of one lake."""

    def __init__(self, address: str) -> None:
        with open_state(address, "claims") as file:
            # It stays open, because closing any descriptor of the file would end all locks of the process
            self._file = os.dup(file.fileno())
        self._held: set[int] = set()
        self._changed = threading.Lock()
        fcntl.lockf(self._file, fcntl.LOCK_SH, 1, _PRESENCE)

    def take(self, call: Call) -> bool:
        """Claim a call, unless this process or another one has claimed it."""
        place = _place(call)
        with self._changed:
            if place in self._held or not self._is_free(place):
                return False
            self._held.add(place)
            os.utime(self._file)
            return True

    def release(self, calls: Iterable[Call]) -> None:
        """End the claims on calls, where this process has them."""
        with self._changed:
            for place in self._held.intersection(map(_place, calls)):
                self._held.remove(place)
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)
            os.utime(self._file)

    def keep(self) -> None:
        """Tell other processes that a claimed call goes on."""
        os.utime(self._file)

    def quiet_seconds(self) -> float:
        """Tell for how long no process has taken, kept or ended a claim."""
        return time.time() - os.fstat(self._file).st_mtime

    def are_shared(self) -> bool:
        """Tell whether another process asks calls of this lake, too."""
        with self._changed:
            if not self._is_free(_PRESENCE):
                return True
            fcntl.lockf(self._file, fcntl.LOCK_SH, 1, _PRESENCE)
            return False

    def _is_free(self, place: int) -> bool:
        """Lock a byte for this process alone, unless another process has locked it."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # either, by POSIX
            return False
        return True


def _place(call: Call) -> int:
    return int(content_hash(list(call))[:15], 16) + 1


@cache
def claims_of(address: str) -> Claims:
    """Return the claims of this process on the calls of a lake."""
    return Claims(address)
