"""A run's ceiling, shared by all processes that make its calls: each holds back a part of it before it starts any.

What is spent is what the ledger holds of the run, and what the holders say they spent outside of it. A holder changes
its row only by a commit that follows immediately the version in which it read the others' rows, and only after its
replies are committed to the ledger; so what is spent and what is held back never passes the ceiling together.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl
from deltalake import DeltaTable

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS
from evalake.contracts.tables.runs import RUN_RESERVATIONS
from evalake.storage.commit import RIGHT_AFTER, commit, merger_of
from evalake.storage.lake import Lake

Rows = Mapping[str, Mapping[str, Any]]

ROUNDING_USD = 1e-9  # sums of prices are off by less


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
        """Tell whether it is no more than `other`, in money and in calls."""
        return self.usd <= other.usd + ROUNDING_USD and self.calls <= other.calls


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What one run may spend and how many calls it may make; None: as much as it takes."""

    usd: float | None = None
    calls: int | None = None

    def __bool__(self) -> bool:
        return self.usd is not None or self.calls is not None

    def __str__(self) -> str:
        limits = [f"{self.usd:g} USD"] if self.usd is not None else []
        return " and ".join([*limits, *([f"{self.calls} calls"] if self.calls is not None else [])])

    @property
    def amount(self) -> Amount:
        """The ceiling as an amount, zero where there is none."""
        return Amount(self.usd or 0.0, self.calls or 0)

    def of(self, amount: Amount) -> Amount:
        """Reduce an amount to the parts that this ceiling limits; the others become 0."""
        return Amount(0.0 if self.usd is None else amount.usd, 0 if self.calls is None else amount.calls)


UNLIMITED = Ceiling()


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands for one of its holders: what is spent, and what the others hold back."""

    spent: Amount
    others: Mapping[str, Amount]
    beats: Mapping[str, int]  # of the others

    @property
    def held(self) -> Amount:
        """What the others hold back together."""
        return sum(self.others.values(), Amount())


@dataclass(frozen=True, slots=True)
class Holding:
    """What a holder holds back from now on, what it has spent outside the ledger, and which others are dead."""

    reserved: Amount
    outside: Amount
    dead: Collection[str] = ()


def standing(lake: Lake, run_id: str, holder: str = "") -> Standing:
    """Read how a run stands now."""
    return _standing(lake, run_id, holder, _rows(lake.ensure(RUN_RESERVATIONS), run_id))


def hold(lake: Lake, run_id: str, holder: str, decide: Callable[[Standing], Holding]) -> Standing:
    """Write a holder's row as `decide` returns it; return the standing that `decide` was given.

    `decide` is called again where another holder was quicker. Raises LakeError where the lake takes no commit.
    """
    table = lake.ensure(RUN_RESERVATIONS)

    def write() -> Standing:
        rows = _rows(table, run_id)
        standing = _standing(lake, run_id, holder, rows)
        decided = _decided(rows, run_id, holder, decide(standing))
        merger = merger_of(table, decided, RUN_RESERVATIONS.key, RIGHT_AFTER)
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        return standing

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


def _standing(lake: Lake, run_id: str, holder: str, rows: Rows) -> Standing:
    """Read the ledger after the rows: what a row no longer holds back was in the ledger before."""
    mine = (pl.col("run_id") == run_id) & (pl.col("origin") == "call")
    asked = lake.frame(CALLS).filter(mine).select(pl.col("cost_usd").sum(), pl.len().alias("calls")).collect()
    outside = sum((Amount(row["outside_usd"], row["outside_calls"]) for row in rows.values()), Amount())
    others = {name: row for name, row in rows.items() if name != holder}
    return Standing(
        spent=Amount(asked["cost_usd"].item(), asked["calls"].item()) + outside,
        others={name: Amount(row["reserved_usd"], row["reserved_calls"]) for name, row in others.items()},
        beats={name: row["beat"] for name, row in others.items()},
    )


def _decided(rows: Rows, run_id: str, holder: str, holding: Holding) -> pl.DataFrame:
    """Build the holder's row, one beat later, and those of dead holders without what they held back."""
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
