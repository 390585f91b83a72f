"""`evalake import` and `export`: results of other tools, recorded ones, and files for others."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from json import dumps
from json import loads as decode
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from polars import DataFrame

from evalake.cli import options
from evalake.cli import output as show
from evalake.cli.configuration import read
from evalake.cli.help import App
from evalake.core.errors import LakeError, UsageError
from evalake.core.files import make_folder, output_file, write_file
from evalake.core.folder_trust import kept
from evalake.request import RunRequest

if TYPE_CHECKING:
    from evalake.sdk import Suite
    from evalake.storage.lake import Lake

app = App()
MOST_PLACES = 20
MOST_FIGURES = 4
CONTRACTS, RESULTS, CANARY = "contracts", "results", "canary"


class ResultsFormat(StrEnum):
    """The format of exported results."""

    parquet = "parquet"
    csv = "csv"
    junit = "junit"
    inspect = "inspect"
    every_eval_ever = "every-eval-ever"


ENDINGS = {
    ResultsFormat.parquet: ".parquet",
    ResultsFormat.csv: ".csv",
    ResultsFormat.junit: ".junit.xml",
    ResultsFormat.inspect: "-inspect",  # a folder: a log for each dataset, model and prompt
    ResultsFormat.every_eval_ever: "-every-eval-ever",
}


@app.command("import")
@options.takes("max_missing", "accept_unreadable", "tags", "note", "configuration_file", "lake")
def import_(
    asked: Mapping[str, Any],
    files: Annotated[
        list[str],
        typer.Argument(
            help="Results of another tool; recorded results (JSON Lines, a folder of a round); or sources of samples.",
            metavar="FILE",
        ),
    ],
    suite: Annotated[
        str | None,
        typer.Option(help="The suite the results belong to; other tools' have one of their task.", metavar="SUITE"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the report goes.", metavar="DIR")] = Path("evalake-reports"),
    full: options.Full = False,
    json: options.Json = False,
) -> None:
    """Import results, of another tool or recorded: scored, audited, measured like a run, without a call."""
    from evalake.admin.import_results import import_recorded, import_samples, import_tool_results
    from evalake.suites.declared.formats.detect import KNOWN, read_tool_results
    from evalake.suites.registry import suite as find_suite
    from evalake.suites.registry import suite_names, suite_of_task
    from evalake.tasks.coverage import tolerance_of_request
    from evalake.tasks.runtime.runs import labels_of

    request = RunRequest(suite or "", **asked)
    where, labels = options.open_lake(request.lake), labels_of(request.tags, request.note)
    chosen = None if suite is None else find_suite(suite, where) if suite in suite_names(where) else None
    if chosen is not None and chosen.data.imports == "samples":
        _finish(where, [import_samples(where, chosen, files, labels)], out, as_json=json, full=full)
        return
    configuration = read(request.configuration_file)
    tolerance = tolerance_of_request(configuration, request)
    paths = [Path(file) for file in files]
    results = read_tool_results(paths)
    if results:
        chosen = suite_of_task(suite) if suite is not None and chosen is None else chosen
        ids = import_tool_results(where, results, chosen, configuration, labels, tolerance)
    elif suite is None and (found := _suite_that_knows(files)) is not None:
        ids = [import_samples(where, found, files, labels)]
    elif suite is None:
        raise UsageError(f"{files[0]} is of no known tool; known are {KNOWN}: for recorded results name their --suite")
    else:
        ids = [import_recorded(where, find_suite(suite, where), paths, configuration, labels, tolerance)]
    _finish(where, ids, out, as_json=json, full=full)


def _suite_that_knows(files: Sequence[str]) -> "Suite | None":
    """Find the one suite whose samples the files plainly are."""
    from evalake.suites.registry import usable_suites

    knowing = [each for each in usable_suites() if each.data.knows is not None and all(map(each.data.knows, files))]
    return knowing[0] if len(knowing) == 1 else None


def _finish(lake: "Lake", run_ids: Sequence[str], out: Path, *, as_json: bool, full: bool) -> None:
    """Print each import; exit with 1 unless all are complete. As JSON, several are an object each, one a line."""
    from evalake.cli.outcome import find_run, finish_import

    code = 0
    for run_id in run_ids:
        run = find_run(lake, run_id)
        assert run is not None
        if not as_json:
            _print_folders(run)
            _print_tools(run)
        try:
            finish_import(run, lake.uri, out, as_json=as_json, full=full)
        except typer.Exit as ended:
            code = max(code, ended.exit_code)
    if code:
        raise typer.Exit(code)


def _print_tools(run: Mapping[str, Any]) -> None:
    """Say in a line whether the figures that a tool reported are those recomputed, and count what has no place."""
    from evalake.sdk.tool_results import Headline

    parameters = decode(run["parameters"] or "{}")
    if "tools" not in parameters:
        return
    figures = [Headline(**each) for each in parameters["headlines"]]
    known = [each for each in figures if each.ours is not None]
    others = [f"{each.name}: {each.said} there, {each.ours} here" for each in known if not each.agrees]
    unknown = sorted({each.name.partition(" ")[0] for each in figures if each.ours is None})
    words = "; ".join(f"{each.name} = {each.said:g}" for each in known[:MOST_FIGURES])
    verdict = f"differ: {'; '.join(others)}" if others else f"are equal here ({words})"
    tools = ", ".join(parameters["tools"])
    if known:
        show.line(f"figures of {tools}: {len(known) - len(others)} of {len(known)} {verdict}")
    if unknown:
        show.line(f"not recomputed: {', '.join(unknown)}")
    for what, count in sorted(parameters["left_over"].items()):
        show.line(f"not kept: {count} {what}")


def _print_folders(run: dict[str, Any]) -> None:
    """Print the files read in folders, and the rows left out by file, if there were any."""
    parameters = decode(run["parameters"] or "{}")
    read: dict[str, int] = parameters.get("folders", {})
    if not read:
        return
    show.table(pl.DataFrame({"folder": list(read), "files read": list(read.values())}))
    for reason, places in parameters["left_out"].items():
        typer.echo(f"\nleft out, {reason}: {len(places)}")
        for place in places[:MOST_PLACES]:
            show.line(f"  {place}")
        if len(places) > MOST_PLACES:
            typer.echo(f"  … and {len(places) - MOST_PLACES} more")
    typer.echo("")


@app.command("export")
def export(
    what: Annotated[
        str,
        typer.Argument(
            help="contracts: one ODCS YAML a table; results: the rows of a run; canary: frozen items from its answers.",
            metavar="WHAT",
        ),
    ],
    run: Annotated[str | None, typer.Argument(help="The run of the results.", metavar="RUN")] = None,
    style: Annotated[
        ResultsFormat, typer.Option("--format", help="The format of results.", metavar="|".join(ResultsFormat))
    ] = ResultsFormat.parquet,
    out: Annotated[
        Path | None, typer.Option(help="The output folder of contracts, or the output file of results.", metavar="FILE")
    ] = None,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Write the data contracts of all tables, or the results of a run for other tools."""
    if what == RESULTS and run is not None:
        _export_results(lake, run, style, out or Path(f"{run}{ENDINGS[style]}"), as_json=json)
    elif what == CANARY and run is not None:
        _export_canary(lake, run, out, as_json=json)
    elif what in (RESULTS, CANARY):
        raise UsageError("name the run: `evalake runs` lists the runs")
    elif what == CONTRACTS and run is None:
        _export_contracts(out or Path("contracts-odcs"), as_json=json)
    elif what == CONTRACTS:
        raise UsageError(f"contracts belong to no run: leave out {run}")
    else:
        raise UsageError(f"{what} cannot be exported: use {CONTRACTS}, {RESULTS} RUN, or {CANARY} RUN")


def _export_canary(lake: str, run_id: str, out: Path | None, *, as_json: bool) -> None:
    """Write answers of a run beside its suite, as the items that the canary asks judges about again."""
    from evalake.admin.export_results import frozen_items
    from evalake.suites.places import FOLDER
    from evalake.suites.registry import CANARY_FILE, suite_folders
    from evalake.tasks.runtime.runs import as_scored, run_row

    where = options.open_lake(lake)
    run = run_row(where, run_id)
    folder = suite_folders().get(run["suite"])
    if out is None and (folder is None or folder.parent == FOLDER):
        raise UsageError(f"{run['suite']} is no suite of a folder of yours, and has its own frozen items: give --out")
    file = out or (folder or Path()) / CANARY_FILE
    if file.exists():
        raise UsageError(f"{file} is there already, and changed items begin another history: remove it first")
    lines = frozen_items(where, as_scored(where, run), run_id)
    write_file(file, "".join(f"{line}\n" for line in lines))
    show.json_or_line({"out": str(file), "items": len(lines)}, f"{len(lines)} answers in {file}", as_json=as_json)


def _export_contracts(out: Path, *, as_json: bool) -> None:
    from evalake.contracts.engines.odcs import odcs_yaml
    from evalake.suites.registry import all_contracts

    contracts = all_contracts()
    try:
        with kept(Path.cwd()):
            make_folder(out)
            for contract in contracts:
                write_file(out / f"{contract.table}.yaml", odcs_yaml(contract))
    except OSError as error:
        raise LakeError(f"cannot write the contracts to {out}: {error.strerror}") from error
    written = {"out": str(out), "contracts": [contract.table for contract in contracts]}
    show.json_or_line(written, f"{len(contracts)} contracts in {out}", as_json=as_json)


def _export_results(lake: str, run_id: str, style: ResultsFormat, out: Path, *, as_json: bool) -> None:
    """Write the result rows of a run, by sample, model and replicate."""
    from evalake.cli.terminal import say
    from evalake.contracts.tables import RUN_ITEMS
    from evalake.reports.files import junit_of_results
    from evalake.reports.wording import count_of
    from evalake.storage.sql.query import write_csv, write_parquet
    from evalake.tasks.failures import without_row
    from evalake.tasks.measure import run_results
    from evalake.tasks.runtime.runs import as_scored, run_row

    where = options.open_lake(lake)
    run = run_row(where, run_id)
    suite = as_scored(where, run)
    rows = run_results(where, suite, run_id, {}).collect()
    listed = where.frame(RUN_ITEMS).filter(run_id=run_id)
    absent = without_row(where, suite, run_id, {}, listed).collect()
    if rows.is_empty():
        raise LakeError(f"the run {run_id} has no results")
    rows = rows.sort(
        "dataset", "sample_id", "model", *(["judge"] if suite.is_judged else []), "prompt_type", "replicate"
    )
    try:
        if style in (ResultsFormat.inspect, ResultsFormat.every_eval_ever):
            counts = _export_to_tool(where, suite, run, rows, absent, style, out)
        else:
            counts = {"rows": rows.height}
            with output_file(out) as file:
                if style is ResultsFormat.parquet:
                    write_parquet([rows], file)
                elif style is ResultsFormat.csv:
                    write_csv([rows], file, spreadsheet_safe=True)
                else:
                    file.write(junit_of_results(run_id, suite, rows, absent).encode())
    except OSError as error:
        raise LakeError(f"cannot write the results to {out}: {error.strerror}") from error
    if absent.height and style in (ResultsFormat.parquet, ResultsFormat.csv):
        say(f"without a row, and so not in the file: {count_of(absent.height, 'item')} of the run")
    written = ", ".join(f"{count} {what}" for what, count in counts.items())
    show.json_or_line({"out": str(out), **counts}, f"{written} in {out}", as_json=as_json)


def _export_to_tool(
    lake: "Lake",
    suite: "Suite",
    run: Mapping[str, Any],
    rows: DataFrame,
    absent: DataFrame,
    style: ResultsFormat,
    out: Path,
) -> dict[str, Any]:
    """Write a folder of files for another tool; returns the number written, by kind."""
    from evalake.admin.export_results import tool_results
    from evalake.reports.files import as_json
    from evalake.suites.declared.formats import written

    counts = {"logs": 0, "answers": 0, "left out": 0}
    make_folder(out)
    for number, results in enumerate(tool_results(lake, suite, run, rows, absent), start=1):
        counts["logs"] += 1
        counts["answers"] += len(results.samples)
        if style is ResultsFormat.inspect:
            place, document = out / f"{suite.name}_{number}", written.inspect_log(results)
        else:
            place = out / written.place_of(results)
            make_folder(place.parent)
            retrieved = f"{run['started_at'].timestamp():.0f}"
            document, instances, left_out = written.documents(results, retrieved)
            counts["left out"] += left_out
            lines = "".join(f"{dumps(each, ensure_ascii=False)}\n" for each in instances)
            write_file(place.with_name(f"{place.name}_samples.jsonl"), lines)
        write_file(place.with_name(f"{place.name}.json"), as_json(document))
    return {what: count for what, count in counts.items() if count or what != "left out"}
