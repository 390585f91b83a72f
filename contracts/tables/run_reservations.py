"""What the processes that make a run's calls hold back of its ceiling, so that together they never pass it."""

from datetime import datetime

from pydantic import Field

from contracts.contract import ALWAYS, Contract, RowModel
from contracts.rule import not_blank, not_negative


class RunReservationRow(RowModel):
    """What one process holds back, and what it has spent that the ledger does not tell."""

    run_id: str = Field(description="The run.")
    holder: str = Field(description="The process that makes calls of the run, by a random name.")
    beat: int = Field(description="Counts the holder's signs of life: one that stands still is of a process that died.")
    reserved_usd: float = Field(description="US dollars held back for calls that are on their way or may start.")
    reserved_calls: int = Field(description="Calls held back in the same way.")
    outside_usd: float = Field(description="US dollars that it spent on attempts without a reply in the ledger.")
    outside_calls: int = Field(description="Calls that it made and gave up on.")
    changed_at: datetime = Field(description="When the row was last written.")


RUN_RESERVATIONS = Contract(
    "run_reservations",
    RunReservationRow,
    ("run_id", "holder"),
    "Ceilings: what each process that makes calls of a run with a ceiling holds back of it, and spent outside the "
    "ledger.",
    (
        *map(not_blank, ("run_id", "holder")),
        *map(not_negative, ("reserved_usd", "reserved_calls", "outside_usd", "outside_calls")),
    ),
    replaced_when=ALWAYS,
)
