"""`evalake label`, `fit-weights`, `calibrate` and `roadmap`: what people, judges and their gaps tell."""

import getpass
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from evalake.cli import options
from evalake.cli import output as show
from evalake.cli.help import App, Group
from evalake.cli.terminal import flows_begun, say, start_server
from evalake.core.configuration import whole_address
from evalake.core.errors import LakeError, SourceError, UsageError
from evalake.core.files import LARGEST_SHEET, place_in, read_file, write_file

if TYPE_CHECKING:
    from evalake.labels.sheets import Labelled
    from evalake.sdk import SheetFormat

app = App()
MOST = 20  # printed themes of each kind
label = App(cls=Group, help="Have people label results: export a sheet, fill it in, import it.", no_args_is_help=True)
app.add_typer(label, name="label")


@label.command("export")
def export(
    run: options.Run,
    size: Annotated[int, typer.Option(min=1, help="How many results to draw.", metavar="N")] = 30,
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .jsonl file; default: CSV on standard output.", metavar="FILE")
    ] = None,
    lake: options.Lake = options.LAKE,
) -> None:
    """Draw results to label, favouring those where judges disagree or are confident and wrong."""
    from evalake.labels.sheets import label_sheet, suite_of

    sheet = label_sheet(options.open_lake(lake), run, size, _format(out))
    if out is None:
        sys.stdout.write(sheet)
        return
    try:
        write_file(out, sheet)
    except OSError as error:
        raise LakeError(f"cannot write {out}: {error.strerror}") from error
    typer.echo(f"{out}: fill it in, then `evalake label import {out} --suite {suite_of(options.open_lake(lake), run)}`")


@label.command("agreement")
def agreement(
    run: options.Run,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
    people: Annotated[bool, typer.Option("--people", help="The agreement of every two people instead.")] = False,
) -> None:
    """Show the agreement of each judge of a run with people, by decision."""
    from evalake.labels.grading import between_people
    from evalake.labels.sheets import judges_and_people, suite_of
    from evalake.suites.registry import suite

    style = options.style_of(style, as_json=json)
    found = options.open_lake(lake)
    rows = between_people(found, suite(suite_of(found, run), found), run) if people else judges_and_people(found, run)
    show.rows(rows, style)


@label.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="The filled-in sheet, .csv or .jsonl.", metavar="FILE")],
    suite: Annotated[str, typer.Option(help="The suite the results belong to.", metavar="SUITE")],
    annotator: Annotated[
        str | None,
        typer.Option("--annotator", "--labeller", help="The annotator of lines that name none.", metavar="NAME"),
    ] = None,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Import labels; skips empty lines, and lists invalid ones."""
    from evalake.labels.sheets import import_labels

    try:
        text = read_file(file, LARGEST_SHEET).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"cannot read {file}: it is not UTF-8") from error
    done = import_labels(options.open_lake(lake), suite, text, _format(file), annotator or getpass.getuser())
    if json:
        refused = [asdict(each) for each in done.refused]
        show.as_json({**asdict(done.landed), "empty": done.empty, "refused": refused})
    else:
        _print_import(file, done)
    if done.refused:
        raise typer.Exit(1)


def _print_import(file: Path, done: "Labelled") -> None:
    landed = done.landed
    typer.echo(
        f"{landed.inserted} answers landed, {landed.replaced} replaced, {landed.already_present} were there already; "
        f"{done.empty} lines are empty, {len(done.refused)} refused"
    )
    for refusal in done.refused:
        say(f"  {file}, {refusal.where}: {refusal.reason}")


def _format(file: Path | None) -> "SheetFormat":
    if file is None or file.suffix == ".csv":
        return "csv"
    if file.suffix == ".jsonl":
        return "jsonl"
    raise UsageError(f"a sheet must be a .csv or .jsonl file, not {file.name}")


@app.command("fit-weights")
def fit_weights(
    ranking: Annotated[Path, typer.Argument(help="CSV with the columns model and rank, 1 the best.", metavar="FILE")],
    run: Annotated[str | None, typer.Option(help="The run with the models; default: the newest.", metavar="ID")] = None,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Fit the weights of a suite's index to a human ranking, and print the limits of the result."""
    from evalake.tasks.calibrate import fit_to_ranking

    fit = fit_to_ranking(options.open_lake(lake), run, ranking)
    if json:
        show.as_json(asdict(fit))
        return
    rows = [
        {"weight of": name, "proposed": weight, "as good from": fit.lowest[name], "to": fit.highest[name]}
        for name, weight in fit.weights.items()
    ]
    show.table(pl.DataFrame(rows))
    predicted = "unknown" if fit.predicted is None else f"{fit.predicted:.0%}"
    spearman = "undefined" if fit.spearman is None else f"{fit.spearman:.2f}"
    agreeing = f"{fit.agreeing} of {fit.pairs} (with the present weights {fit.agreeing_before})"
    typer.echo(f"\npairs ordered as people do: {agreeing}; of unseen models {predicted}; Spearman {spearman}")
    typer.echo(fit.support)


@app.command("calibrate")
def calibrate(
    judges: Annotated[str, typer.Option(help="The judges, by comma.", metavar="NAMES")],
    suite: Annotated[
        str | None,
        typer.Option(help="The suite with the calibration set; default: the first with one.", metavar="SUITE"),
    ] = None,
    config: options.Config = None,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
) -> None:
    """Measure judges on items of known judgement; the ledger answers known calls."""
    from evalake.tasks.calibrate import calibrated_suites

    style = options.style_of(style, as_json=json)
    chosen = options.suite_with("calibration set", calibrated_suites(), suite)
    wanted = options.names("--judges", judges) or []
    say("starting Prefect …")
    server = start_server()

    from evalake.flows.judges import calibrate as flow

    with flows_begun(server):
        rows = flow(chosen, wanted, lake, str(config) if config else None)
    show.rows(pl.DataFrame(rows), style)


@app.command("roadmap")
def roadmap(
    suite: Annotated[
        str | None,
        typer.Option(help="The suite of the results; default: the one with a roadmap.", metavar="SUITE"),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="The model that groups by meaning; default: rules, by common words.", metavar="NAME"),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the grouping of a labelled set; make no roadmap.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder of its page.", metavar="DIR")] = Path("evalake-reports"),
    config: options.Config = None,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Group the gaps of scored results, like missing tools, and rank them by lost points.

    The ledger answers known calls, so the same results give the same roadmap at no cost.
    """
    from evalake.admin.roadmap import as_data, roadmap_suites, rows_of

    name = options.suite_with("roadmap", roadmap_suites(), suite)
    say("starting Prefect …")
    server = start_server()

    from evalake.flows.judges import measure_roadmap
    from evalake.flows.judges import roadmap as flow

    file = str(config) if config else None
    if measure:
        with flows_begun(server):
            measured = measure_roadmap(name, judge, lake, file)
        if json:
            show.as_json(measured)
        else:
            frame = pl.DataFrame(measured).with_columns(pl.col(pl.Float64).round(3))
            show.table(frame.rename(lambda name: name.replace("_", " ")))
        return
    with flows_begun(server):
        made = flow([name], judge, lake, file)
    data = as_data(rows_of(options.open_lake(lake), made.get(name, "")))
    if json:
        show.as_json(data)
    elif data["roadmap_id"] is None:
        say(f"the lake {whole_address(lake)} has no scored results of {name} with gaps")
    else:
        from evalake.reports.page import write_roadmap

        _print_roadmap(data)
        typer.echo(f"\nreport: {write_roadmap(data, place_in(out, data['roadmap_id'][:12]))}")


def _print_roadmap(data: Mapping[str, Any]) -> None:
    """Print the most costly themes by kind."""
    by = f"by {data['judge']}" if data["judge"] else "by the words in common"
    show.line(f"{data['title']}: {data['samples']} scored samples, grouped {by}")
    for kind in data["kinds"]:
        if themes := kind["themes"]:
            show.line(f"\n{kind['title']}{f', the first {MOST} of {len(themes)}' if len(themes) > MOST else ''}")
            table = pl.DataFrame(
                [
                    {
                        "#": theme["rank"],
                        "samples": theme["samples"],
                        "points lost": round(theme["points_lost"], 1),
                        "mean score": round(theme["mean_score"], 1),
                        "theme": theme["theme"],
                    }
                    for theme in themes[:MOST]
                ]
            )
            show.lines(table)
