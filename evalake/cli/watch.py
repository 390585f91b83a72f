"""`evalake watch`: shows a run under way, model by model, until it ends; from any terminal with its lake."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.options import LAKE, LakeOption
from evalake.core.errors import UsageError
from evalake.core.redaction import visible

if TYPE_CHECKING:
    from rich.console import Group

    from evalake.reports.coverage import Coverage
    from evalake.storage.lake import Lake

LOOK_SECONDS = 2.0


def watch(
    run: Annotated[str | None, typer.Argument(help="The run; without it the newest.", metavar="RUN")] = None,
    lake: LakeOption = LAKE,
) -> None:
    """Show how far a run is: answered, failed and left by model, cost, rate and time left; until it ends.

    Exits with 0 where the run completed, 3 where it waits for batch jobs, 1 where it ended otherwise.
    """
    from rich.live import Live

    from evalake.cli import output as show
    from evalake.storage.lake import Lake

    where = Lake(lake)
    row = _row(where, run)
    terminal = show.console()
    with Live(_shown(row, _covered(where, row)), console=terminal, auto_refresh=False) as live:
        while row["state"] == "running":
            time.sleep(LOOK_SECONDS)
            row = _row(where, row["run_id"])
            live.update(_shown(row, _covered(where, row)), refresh=True)
    if not terminal.is_terminal:
        typer.echo()  # rich ends the last line on a terminal only
    if row["message"]:
        show.paragraph(row["message"])
    if row["state"] != "completed":
        raise typer.Exit(3 if row["state"] == "waiting" else 1)


def headline(row: Mapping[str, Any], now: datetime) -> str:
    """Describe how far a run is, as its row of RUNS tells."""
    from evalake.reports.wording import dollars

    done = "an unknown number" if row["items_done"] is None else f"{row['items_done']:,}"
    parts = [f"{row['suite']} {row['run_id']} {row['state']}: {done} of {row['items']:,} items"]
    seconds = ((row["ended_at"] or now) - row["started_at"]).total_seconds()
    if row["items_done"] and seconds > 0:
        rate = row["items_done"] / seconds
        parts.append(f"{rate:,.1f} a second")
        if row["state"] == "running":
            parts.append(f"{timedelta(seconds=round((row['items'] - row['items_done']) / rate))} left")
    if row["state"] != "running" or row["calls_made"] or row["calls_from_ledger"]:  # calls are counted by batch
        cost = "unknown" if row["cost_usd"] is None else f"{dollars(row['cost_usd'])} USD"
        parts.append(f"cost {cost}")
    return ", ".join(parts)


def _row(lake: "Lake", run_id: str | None) -> dict[str, Any]:
    """Read the row of a run, or of the newest. Raises UsageError where the lake has none."""
    from evalake.contracts.tables import RUNS
    from evalake.tasks.runtime.runs import no_run, with_state

    rows = with_state(lake, lake.frame(RUNS))
    found = rows.sort("started_at").tail(1) if run_id is None else rows.filter(run_id=run_id)
    frame = found.collect()
    if frame.is_empty():
        raise UsageError(f"the lake {lake.uri} has no run yet") if run_id is None else no_run(lake, run_id)
    return frame.row(0, named=True)


def _covered(lake: "Lake", row: Mapping[str, Any]) -> "list[Coverage]":
    from evalake.reports.coverage import pooled
    from evalake.suites.registry import suite
    from evalake.tasks.coverage import cover, coverage_of

    ended = coverage_of(lake, row)
    return pooled(ended or cover(lake, suite(row["suite"], lake), row["run_id"], row["judges"]))


def _shown(row: Mapping[str, Any], covered: "Sequence[Coverage]") -> "Group":
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from evalake.reports.coverage import NOT_ASKED

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("model", "asked", "answered", "no verdict", "failed", "left"):
        table.add_column(name, justify="left" if name == "model" else "right", overflow="fold")
    whole = row["items"] // (len(row["models"]) * max(len(row["judges"]), 1) or 1)
    for each in covered:
        not_asked = each.missing_kinds.get(NOT_ASKED, 0)
        # Items of a run under way that wait for their judge are on no manifest yet
        unlisted = max(whole - each.asked, 0) if row["state"] == "running" else 0
        failed, left = each.missing - not_asked, not_asked + unlisted
        counts = (each.asked + unlisted, each.answered, each.without_verdict, failed, left)
        table.add_row(Text(visible(each.who)), *(f"{count:,}" for count in counts))
    return Group(Text(headline(row, datetime.now(UTC))), table)
