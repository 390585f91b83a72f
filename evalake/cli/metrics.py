"""`evalake metrics` and `report`: a snapshot's values, and the report of a run."""

from collections.abc import Iterator
from json import loads
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from polars import DataFrame, Float64, Series, String

from evalake.cli import options
from evalake.cli import output as show
from evalake.cli.help import App
from evalake.cli.terminal import say
from evalake.core.errors import UsageError, did_you_mean
from evalake.core.files import place_in

if TYPE_CHECKING:
    from evalake.storage.lake import Lake

app = App()
FIELDS = (
    "suite", "model", "judge", "slice", "slice_value", "metric", "tier", "value", "n",
    "units", "n_eff", "se", "ci_low", "ci_high", "reliable",
)  # fmt: skip


@app.command("metrics")
def metrics(
    run: Annotated[str | None, typer.Option(help="A run's newest snapshot.", metavar="ID")] = None,
    snapshot: Annotated[str | None, typer.Option(help="A snapshot, or the beginning of its id.", metavar="ID")] = None,
    suite: Annotated[str | None, typer.Option(help="The newest measured run of this suite.", metavar="SUITE")] = None,
    tag: options.NewestTagged = None,
    metric: Annotated[
        str | None, typer.Option(help="Only these metrics, by comma, in all slices.", metavar="NAMES")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Only these models, by comma.", metavar="NAMES")] = None,
    slice_: Annotated[
        str | None,
        typer.Option("--slice", help="Every metric in these slices, by comma; all: of all samples.", metavar="NAMES"),
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Every metric in every slice.")] = False,
    corrected: options.Corrected = False,
    shrink: Annotated[
        bool,
        typer.Option("--shrunk", help="Rates of parts of slices, drawn together by a beta-binomial model."),
    ] = False,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
) -> None:
    """Print the metrics of a snapshot; without options, the headline metrics of the newest.

    JSON and CSV hold every metric in every slice, but for what --metric, --model and --slice leave out.
    """
    from evalake.reports.tables import headline_first, value_lines
    from evalake.reports.wording import lacking
    from evalake.storage.snapshots import find_snapshot, read_metrics
    from evalake.suites.registry import suite as find_suite

    style = options.style_of(style, as_json=json)
    newest_of = "--suite" if suite else "--tag" if tag else None
    given = [option for option, value in (("--run", run), ("--snapshot", snapshot), (newest_of, newest_of)) if value]
    if len(given) > 1:
        raise UsageError(f"give {given[0]} or {given[1]}, not both")
    where = options.open_lake(lake)
    if newest_of:
        from evalake.decisions.sides import measured_runs

        run = next(iter(measured_runs(where, tag, suite)))
    snapshot_shown = find_snapshot(where, run_id=run, snapshot_id=snapshot)
    declared = find_suite(snapshot_shown["suite"], where).metrics
    measured = read_metrics(where, snapshot_shown["snapshot_id"]).select(FIELDS)
    if corrected:
        from evalake.tasks.corrected import corrected_rows, correction_notes, corrections

        known = corrections(where, snapshot_shown)
        measured = corrected_rows(measured, known)
        for note in correction_notes(known, declared.corrected or declared.headline[:1]):
            say(note)
    values = headline_first(measured, declared.headline)
    asked = {"metric": metric, "model": model, "slice": slice_}
    wanted = {name: options.names(f"--{name}", text) for name, text in asked.items()}
    chosen = _with_shares(where, snapshot_shown["run_id"], _chosen(where, snapshot_shown, values, wanted))
    if shrink:
        chosen = _shrunk(where, chosen, snapshot_shown, in_place=style is options.Format.table)
    if style is not options.Format.table:
        for note in _by_chance(chosen):
            say(note)
        show.rows(chosen, style)
        return
    if not (whole or metric or slice_):
        chosen = chosen.filter(chosen["metric"].is_in(declared.headline), slice="all")
    shares = [lacking(share) for share in chosen["missing"]]
    named = chosen.with_columns(model=chosen["model"] + Series(shares, dtype=String))
    for line in (*_heading(snapshot_shown, show.width()), *value_lines(named, show.width())):
        show.line(line)
    for line in _what_else(values, chosen, show.width()):
        show.line(line)


def _with_shares(lake: "Lake", run_id: str, values: DataFrame) -> DataFrame:
    """Add the share of its items that each model and judge lacks; null where nobody counted."""
    from evalake.tasks.coverage import missing_shares

    rows = missing_shares(lake).filter(run_id=run_id).collect().iter_rows()
    shares = {(model, judge or None): share for _, model, judge, share in rows}
    subjects = values.select("model", "judge").rows()
    return values.with_columns(missing=Series([shares.get(each) for each in subjects], dtype=Float64))


def _shrunk(lake: "Lake", values: DataFrame, snapshot: dict[str, Any], *, in_place: bool) -> DataFrame:
    """Add model-based rates of parts of slices; in a table they replace the raw ones, under a name that says so."""
    from evalake.metrics.estimators import Rate
    from evalake.metrics.items import with_shrunk
    from evalake.suites.registry import suite

    declared = suite(snapshot["suite"], lake).all_metrics(loads(snapshot["options"]))
    shown = with_shrunk(values, [each.name for each in declared if type(each.estimator) is Rate])
    if not in_place:
        return shown
    known = pl.col("shrunk").is_not_null()
    named = pl.when(known).then(pl.col("metric") + " (model-based)").otherwise("metric").alias("metric")
    pairs = (("value", "shrunk"), ("ci_low", "shrunk_low"), ("ci_high", "shrunk_high"))
    replaced = (pl.when(known).then(new).otherwise(old).alias(old) for old, new in pairs)
    return shown.with_columns(named, *replaced).select(values.columns)


def _chosen(
    lake: "Lake", snapshot: dict[str, Any], values: DataFrame, wanted: dict[str, list[str] | None]
) -> DataFrame:
    """Return the rows that the options choose.

    Raises UsageError for a name that the snapshot does not have: it says whose snapshot that is, and which one has it.
    """
    from evalake.storage.snapshots import newest_with

    for column, given in wanted.items():
        if given is None:
            continue
        known = values[column].unique().sort().to_list()
        for name in given:
            if name not in known:
                if other := newest_with(lake, column, name):
                    hint = f"; the run {other['run_id']} of {other['suite']} has it: --run {other['run_id']}"
                else:
                    hint = did_you_mean(name, known) or f": it has {', '.join(known[:8])}"
                raise UsageError(f"{_whose(snapshot)} has no {column} {name}{hint}")
        values = values.filter(values[column].is_in(given))
    return values


def _by_chance(shown: DataFrame) -> Iterator[str]:
    """Say how many intervals of parts miss their values by chance, where several are shown."""
    from evalake.reports.wording import multiplicity

    if (parts := shown.filter((shown["slice"] != "all") & shown["ci_low"].is_not_null()).height) > 1:
        yield f"{multiplicity(parts)} (parts of slices)"


def _whose(snapshot: dict[str, Any]) -> str:
    return f"the snapshot {snapshot['snapshot_id'][:12]} of {snapshot['suite']}, run {snapshot['run_id']},"


def _heading(snapshot: dict[str, Any], width: int) -> Iterator[str]:
    made = f"{snapshot['created_at']:%Y-%m-%d %H:%M}"
    title = f"{snapshot['suite']}: snapshot {snapshot['snapshot_id'][:12]} of run {snapshot['run_id']}, made {made}"
    yield from wrap(title, width, subsequent_indent="  ")
    for warning in snapshot["warnings"]:
        yield from wrap(f"! {warning}", width, subsequent_indent="  ")


def _what_else(values: DataFrame, shown: DataFrame, width: int) -> Iterator[str]:
    """Print which metrics and slices of the snapshot are not shown, and the options that show them."""
    from evalake.reports.report import why_unreliable
    from evalake.reports.wording import UNRELIABLE

    yield ""
    if not shown["reliable"].all():
        yield from wrap(f"{UNRELIABLE} {why_unreliable(shown['judge'].unique())}", width, subsequent_indent="  ")
    yield from _by_chance(shown)
    if more := values["metric"].n_unique() - shown["metric"].n_unique():
        yield f"{more} more metrics: --slice all, or --metric NAME"
    slices = [name for name in values["slice"].unique().sort() if name != "all"]
    if slices and shown["slice"].n_unique() <= len(slices):
        yield from wrap(f"slices: --slice {' | '.join(slices)}", width, subsequent_indent="  ")
    if shown.height < values.height:
        yield "everything: --all"


@app.command("report")
def report(
    run: options.Run,
    out: Annotated[Path, typer.Option(help="The output folder.", metavar="DIR")] = Path("evalake-reports"),
    lake: options.Lake = options.LAKE,
    full: options.Full = False,
    json: options.Json = False,
    corrected: options.Corrected = False,
    folder: Annotated[
        bool, typer.Option("--folder", help="Write each figure as SVG, and as PNG where rsvg-convert is installed.")
    ] = False,
) -> None:
    """Print a run's summary and write its report: HTML with plots, and JSON."""
    from evalake.cli.outcome import print_coverage
    from evalake.reports.console import Summary
    from evalake.reports.page import DATA, png_converter, write_page
    from evalake.tasks.report import build_report

    place = place_in(out, run)
    built = build_report(options.open_lake(lake), run, corrected=corrected)
    page = write_page(built, place, figures=folder)
    if folder and png_converter() is None:
        say("the figures are SVG alone: rsvg-convert, which makes PNG of them, is not installed (Debian: librsvg2-bin)")
    if json:
        show.as_json({"run_id": run, "page": str(page), "data": str(page.with_name(DATA))})
        return
    show.console().print(Summary(built, whole=full))
    typer.echo(f"report: {page}")
    print_coverage(built.coverage)
