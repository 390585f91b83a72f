"""`evalake label` and `fit-weights`: sheets for people to fill in, and an index that ranks as people do."""

import getpass
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from evalake.cli import output as show
from evalake.cli.help import App, Group
from evalake.cli.options import LAKE, Format, JsonOption, LakeOption, RowsAsJsonOption, StyleOption, style_of
from evalake.cli.terminal import say
from evalake.core.errors import LakeError, SourceError, UsageError
from evalake.core.files import LARGEST_SHEET, read_file, write_file
from evalake.labels.grading import between_people
from evalake.labels.sheets import Labelled, import_labels, judges_and_people, label_sheet, suite_of
from evalake.sdk import SheetFormat
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.tasks.calibrate import fit_to_ranking

app = App()
label = App(cls=Group, help="Have people label results: export a sheet, fill it in, import it.", no_args_is_help=True)
app.add_typer(label, name="label")


@label.command("export")
def export(
    run: Annotated[str, typer.Argument(help="The run; `evalake runs` lists them.", metavar="RUN")],
    size: Annotated[int, typer.Option(min=1, help="How many results to draw.", metavar="N")] = 30,
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .jsonl file; default: CSV on standard output.", metavar="FILE")
    ] = None,
    lake: LakeOption = LAKE,
) -> None:
    """Draw results to label, favouring those where judges disagree or are confident and wrong."""
    sheet = label_sheet(Lake(lake), run, size, _format(out))
    if out is None:
        sys.stdout.write(sheet)
        return
    try:
        write_file(out, sheet)
    except OSError as error:
        raise LakeError(f"cannot write {out}: {error.strerror}") from error
    typer.echo(f"{out}: fill it in, then `evalake label import {out} --suite {suite_of(Lake(lake), run)}`")


@label.command("agreement")
def agreement(
    run: Annotated[str, typer.Argument(help="The run; `evalake runs` lists them.", metavar="RUN")],
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
    people: Annotated[bool, typer.Option("--people", help="The agreement of every two people instead.")] = False,
) -> None:
    """Show the agreement of each judge of a run with people, by decision."""
    style = style_of(style, as_json=json)
    found = Lake(lake)
    if people:
        show.rows(between_people(found, suite(suite_of(found, run), found), run), style)
    else:
        show.rows(judges_and_people(found, run), style)


@label.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="The filled-in sheet, .csv or .jsonl.", metavar="FILE")],
    suite: Annotated[str, typer.Option(help="The suite the results belong to.", metavar="SUITE")],
    annotator: Annotated[
        str | None,
        typer.Option("--annotator", "--labeller", help="The annotator of lines that name none.", metavar="NAME"),
    ] = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Import labels; skips empty lines, and lists invalid ones."""
    try:
        text = read_file(file, LARGEST_SHEET).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"cannot read {file}: it is not UTF-8") from error
    done = import_labels(Lake(lake), suite, text, _format(file), annotator or getpass.getuser())
    if json:
        refused = [asdict(each) for each in done.refused]
        show.as_json({**asdict(done.landed), "empty": done.empty, "refused": refused})
    else:
        _print_import(file, done)
    if done.refused:
        raise typer.Exit(1)


def _print_import(file: Path, done: Labelled) -> None:
    landed = done.landed
    typer.echo(
        f"{landed.inserted} answers landed, {landed.replaced} replaced, {landed.already_present} were there already; "
        f"{done.empty} lines are empty, {len(done.refused)} refused"
    )
    for refusal in done.refused:
        say(f"  {file}, {refusal.where}: {refusal.reason}")


def _format(file: Path | None) -> SheetFormat:

    if file is None or file.suffix == ".csv":
        return "csv"
    if file.suffix == ".jsonl":
        return "jsonl"
    raise UsageError(f"a sheet must be a .csv or .jsonl file, not {file.name}")


@app.command("fit-weights")
def fit_weights(
    ranking: Annotated[Path, typer.Argument(help="CSV with the columns model and rank, 1 the best.", metavar="FILE")],
    run: Annotated[
        str | None, typer.Option("--run", help="The run with the models; default: the newest.", metavar="ID")
    ] = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Fit the weights of a suite's index to a human ranking, and print the limits of the result."""
    fit = fit_to_ranking(Lake(lake), run, ranking)
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
