"""`evalake runs`, `show`, `watch`, `cancel`, `rescore` and `snapshots`: what became of runs, and their snapshots."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.console import Group as Lines
from rich.live import Live
from rich.table import Table
from rich.text import Text

from evalake.cli import options, output
from evalake.cli.configuration import read
from evalake.cli.help import App, Group
from evalake.core.errors import EvalakeError, UsageError
from evalake.core.redaction import visible

if TYPE_CHECKING:
    from evalake.reports.coverage import Coverage
    from evalake.storage.lake import Lake

app = App()
group = App(cls=Group, invoke_without_command=True)
app.add_typer(group, name="snapshots")

COLUMNS = (
    "run_id", "suite", "models", "state", "started", "done", "samples", "cost_usd", "tags", "calls_made",
    "calls_from_ledger", "calls_failed", "rows_quarantined", "started_by", "attempts", "note", "changed", "message",
)  # fmt: skip
SNAPSHOT_COLUMNS = ("snapshot_id", "suite", "run_id", "created_at", "definition_hash", "pinned_versions", "warnings")
MODEL_WIDTH = 20  # characters of a model's name in the table
LOOK_SECONDS = 2.0


@app.command("runs")
def runs(
    suite: options.Suite = None,
    tag: Annotated[str | None, typer.Option(help="Only runs with this tag.", metavar="TAG")] = None,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
) -> None:
    """List the runs, newest first."""
    from evalake.contracts.tables import RUNS
    from evalake.decisions.trend import headline_changes
    from evalake.tasks.runtime.runs import of_suite, tagged, with_attempts, with_labels, with_state

    style = options.style_of(style, as_json=json)
    where = options.open_lake(lake)
    wanted = with_labels(with_attempts(where, with_state(where, where.frame(RUNS))))
    rows = tagged(of_suite(wanted, suite), tag).sort("started_at", descending=True).collect()
    changes: dict[str, list[str]] = {}
    for each in headline_changes(where):
        changes.setdefault(each.run_id, []).append(each.sentence)
    told = [changes.get(run_id) for run_id in rows["run_id"]]
    rows = rows.with_columns(changed=pl.Series(told, dtype=pl.List(pl.String())))
    if style is options.Format.table:
        rows = rows.with_columns(
            done=pl.format("{} of {}", "items_done", "items"),
            started=pl.col("started_at").dt.strftime("%m-%d %H:%M"),
            models=pl.col("models").map_elements(_brief, return_dtype=pl.String),
            tags=pl.when(pl.col("tags").list.len() > 0).then("tags"),
        )
    what = f"runs of {suite}" if suite else "runs"
    output.listing(what if tag is None else f"{what} tagged {tag}", rows, lake, style, COLUMNS)


def _brief(models: Sequence[str]) -> str:
    """Shorten the models of a run to the name of the first and the number of others; a dash for none."""
    if not len(models):
        return "–"
    first, others = models[0].rsplit("/", 1)[-1], len(models) - 1
    first = first if len(first) <= MODEL_WIDTH else f"{first[: MODEL_WIDTH - 1]}…"
    return f"{first} +{others}" if others else first


@app.command("watch")
def watch(
    run: Annotated[str | None, typer.Argument(help="The run; without it the newest.", metavar="RUN")] = None,
    lake: options.Lake = options.LAKE,
) -> None:
    """Show how far a run is: answered, failed and left by model, cost, rate and time left; until it ends.

    Exits with 0 where the run completed, 3 where it waits for batch jobs or is suspended, 1 where it ended otherwise.
    """
    where = options.open_lake(lake)
    row = _row(where, run)
    terminal = output.console()
    with Live(_shown(row, _covered(where, row)), console=terminal, auto_refresh=False) as live:
        while row["state"] == "running":
            time.sleep(LOOK_SECONDS)
            row = _row(where, row["run_id"])
            live.update(_shown(row, _covered(where, row)), refresh=True)
    if not terminal.is_terminal:
        typer.echo()  # rich ends the last line on a terminal only
    if row["message"]:
        output.paragraph(row["message"])
    if row["state"] != "completed":
        raise typer.Exit(3 if row["state"] in ("waiting", "suspended") else 1)


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
    from evalake.tasks.runtime.runs import run_row, with_state

    if run_id is not None:
        return run_row(lake, run_id)
    newest = with_state(lake, lake.frame(RUNS)).sort("started_at").tail(1).collect()
    if newest.is_empty():
        raise UsageError(f"the lake {lake.uri} has no run yet")
    return newest.row(0, named=True)


def _covered(lake: "Lake", row: Mapping[str, Any]) -> "list[Coverage]":
    from evalake.reports.coverage import pooled
    from evalake.suites.registry import suite
    from evalake.tasks.coverage import cover, coverage_of

    ended = coverage_of(lake, row)
    return pooled(ended or cover(lake, suite(row["suite"], lake), row["run_id"], row["judges"]))


def _shown(row: Mapping[str, Any], covered: "Sequence[Coverage]") -> Lines:
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
    return Lines(Text(headline(row, datetime.now(UTC))), table)


@app.command("cancel")
def cancel(
    run: Annotated[str, typer.Argument(help="The run whose batch jobs are cancelled.", metavar="RUN")],
    config: options.Config = None,
    lake: options.Lake = options.LAKE,
) -> None:
    """Cancel the batch jobs of a run; the provider bills finished answers, and a later run collects them."""
    from evalake.tasks.jobs import cancel_jobs
    from evalake.tasks.runtime.context import RunContext
    from evalake.tasks.runtime.runs import AWAITS_NONE, amended, run_row

    where = options.open_lake(lake)
    row = run_row(where, run)
    cancelled = cancel_jobs(RunContext(run, row["suite"], where, read(config)), run)
    if not cancelled and not (row["message"] or "").startswith("waiting: "):
        raise EvalakeError(f"the run {run} waits for no batch job")
    if not cancelled:  # another run has landed its jobs, or has them
        amended(where, run, message=AWAITS_NONE)
        output.line(f"the run {run} waits no longer")
    for job in cancelled:
        output.line(job.progress)
    if any(job.state not in ("cancelling", "closed") for job in cancelled):
        raise EvalakeError("some batch jobs were not cancelled: cancel the run again")


@app.command("rescore")
def rescore(
    run: options.Run,
    config: options.Config = None,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Derive a run's rows and snapshot again from the ledger, by the present rules."""
    from evalake.tasks.rescore import rescore as rescore_run

    done = rescore_run(options.open_lake(lake), run, read(config))
    rows = done.published.counts
    text = (
        f"run {run}: {done.items - done.unanswered} of {done.items} items rescored from the ledger, "
        f"{rows['landed']} rows landed, {rows['already_present']} already present; "
        f"snapshot {done.snapshot_id[:12]}"
    )
    told = {"run_id": run, "snapshot_id": done.snapshot_id, "items": done.items, "rows": rows}
    output.json_or_line(told, text, as_json=json)
    done.require_whole(run)


@group.callback()
def snapshots(
    context: typer.Context,
    suite: options.Suite = None,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
) -> None:
    """List the snapshots, newest first; or verify one."""
    style = options.style_of(style, as_json=json)
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return

    from evalake.contracts.tables import SNAPSHOTS
    from evalake.tasks.runtime.runs import of_suite

    rows = of_suite(options.open_lake(lake).frame(SNAPSHOTS), suite).sort("created_at", descending=True).collect()
    if style is options.Format.table:
        rows = rows.with_columns(pl.col("snapshot_id").str.slice(0, 12), pl.col("definition_hash").str.slice(0, 12))
    output.listing("snapshots", rows, lake, style, SNAPSHOT_COLUMNS)


@group.command("verify")
def verify(
    snapshot_id: Annotated[str, typer.Argument(help="A snapshot, or the beginning of its id.", metavar="ID")],
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Prove a snapshot: recompute its values from the table versions that it pins.

    Exits with 0 where all values are equal, 1 where one differs, 3 where they could not be recomputed.
    """
    from evalake.admin.prove import verify_snapshot

    proof = verify_snapshot(options.open_lake(lake), snapshot_id)
    told = {"snapshot_id": proof.snapshot_id, "outcome": proof.outcome, "reason": proof.reason or None}
    text = f"snapshot {proof.name}: {proof.outcome}{f': {proof.reason}' if proof.reason else ''}"
    output.json_or_line(told, text, as_json=json)
    if proof.exit_code:
        raise typer.Exit(proof.exit_code)


def _refuse_options(context: typer.Context) -> None:
    """Refuse options of the listing before a subcommand, which would ignore them."""
    listing = {"suite": "--suite", "lake": "--lake", "style": "--format", "json": "--json"}
    sources = {option: context.get_parameter_source(name) for name, option in listing.items()}
    if given := [option for option, source in sources.items() if source is not None and source.name == "COMMANDLINE"]:
        command = f"evalake snapshots {context.invoked_subcommand}"
        raise UsageError(f"{given[0]} does not fit `{command}`: see `{command} -h`")


@app.command("show")
def show(
    run: options.Run,
    sample: Annotated[
        str | None,
        typer.Argument(help="A sample by its name, DATASET/NAME, or the beginning of its hash.", metavar="SAMPLE"),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Only these models, by comma.", metavar="NAMES")] = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="Only samples that a model got wrong.")] = False,
    differ: Annotated[bool, typer.Option("--differ", help="Only samples on which models differ.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="The most samples of the table.", metavar="N")] = 50,
    full: Annotated[bool, typer.Option("--full", help="Print long texts and requests in full.")] = False,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
) -> None:
    """List a run's samples with each model's verdict; or print one: input, truth, conversation, judgements.

    JSON and CSV hold a line an answer, of every sample; of one sample, JSON holds everything.
    """
    from evalake.cli.samples import PAGE, index_of, print_list, print_one
    from evalake.server.viewer.items import WantedPage
    from evalake.server.viewer.run_index import RunIndexes

    style = options.style_of(style, as_json=json)
    indexes = RunIndexes(options.open_lake(lake))
    index = index_of(indexes, run)
    models = options.names("--model", model) or []
    if unknown := [name for name in models if name not in index.run["models"]]:
        raise UsageError(f"the run has no model {unknown[0]}: there is {', '.join(index.run['models'])}")
    wanted = WantedPage(
        model=models, correct="false" if wrong else None, differ="models" if differ else None, limit=PAGE
    )
    if sample is None:
        print_list(indexes, index, wanted, limit, lake, style)
    else:
        print_one(indexes, index, sample, wanted, lake, style, full=full)
