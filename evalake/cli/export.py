"""`evalake export`: writes contracts as Open Data Contract Standard documents, or a run's results as a file."""

from collections.abc import Mapping
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.options import LAKE, JsonOption, LakeOption
from evalake.core.errors import LakeError, UsageError
from evalake.core.files import make_folder, output_file, write_file

if TYPE_CHECKING:
    from polars import DataFrame

    from evalake.sdk import Suite
    from evalake.storage.lake import Lake

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


def export(
    what: Annotated[
        str,
        typer.Argument(
            help="contracts: one ODCS YAML a table; results: the rows of a run; canary: frozen items from its answers.",
            metavar="WHAT",
        ),
    ],
    run: Annotated[str | None, typer.Argument(help="The run of the results.", metavar="RUN")] = None,
    style: Annotated[ResultsFormat, typer.Option("--format", help="The format of results.")] = ResultsFormat.parquet,
    out: Annotated[
        Path | None, typer.Option(help="The output folder of contracts, or the output file of results.", metavar="FILE")
    ] = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
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
    from evalake.cli import output as show
    from evalake.cli.outcome import find_run
    from evalake.storage.lake import Lake
    from evalake.suites.places import FOLDER
    from evalake.suites.registry import CANARY_FILE, suite_folders
    from evalake.suites.registry import suite as find_suite

    where = Lake(lake)
    run = find_run(where, run_id)
    if run is None:
        raise UsageError(f"the lake {where.uri} has no run {run_id}: `evalake runs` lists the runs")
    folder = suite_folders().get(run["suite"])
    if out is None and (folder is None or folder.parent == FOLDER):
        raise UsageError(f"{run['suite']} is no suite of a folder of yours, and has its own frozen items: give --out")
    file = out or (folder or Path()) / CANARY_FILE
    if file.exists():
        raise UsageError(f"{file} is there already, and changed items begin another history: remove it first")
    lines = frozen_items(where, find_suite(run["suite"], where), run_id)
    write_file(file, "".join(f"{line}\n" for line in lines))
    if as_json:
        show.as_json({"out": str(file), "items": len(lines)})
    else:
        typer.echo(f"{len(lines)} answers in {file}")


def _export_contracts(out: Path, *, as_json: bool) -> None:
    from evalake.cli import output as show
    from evalake.contracts.engines.odcs import odcs_yaml
    from evalake.suites.registry import all_contracts

    contracts = all_contracts()
    try:
        make_folder(out)
        for contract in contracts:
            write_file(out / f"{contract.table}.yaml", odcs_yaml(contract))
    except OSError as error:
        raise LakeError(f"cannot write the contracts to {out}: {error.strerror}") from error
    if as_json:
        show.as_json({"out": str(out), "contracts": [contract.table for contract in contracts]})
    else:
        typer.echo(f"{len(contracts)} contracts in {out}")


def _export_results(lake: str, run_id: str, style: ResultsFormat, out: Path, *, as_json: bool) -> None:
    """Write the result rows of a run, by sample, model and replicate."""
    from evalake.cli import output as show
    from evalake.cli.outcome import find_run
    from evalake.reports.results import as_junit
    from evalake.storage.lake import Lake
    from evalake.storage.sql.query import write_csv, write_parquet
    from evalake.suites.registry import suite as find_suite
    from evalake.tasks.measure import run_results
    from evalake.tasks.runtime.runs import no_run

    where = Lake(lake)
    run = find_run(where, run_id)
    if run is None:
        raise no_run(where, run_id)
    suite = find_suite(run["suite"], where)
    rows = run_results(where, suite, run_id, {}).collect()
    if rows.is_empty():
        raise LakeError(f"the run {run_id} has no results")
    rows = rows.sort(
        "dataset", "sample_id", "model", *(["judge"] if suite.is_judged else []), "prompt_type", "replicate"
    )
    try:
        if style in (ResultsFormat.inspect, ResultsFormat.every_eval_ever):
            written = _export_to_tool(where, suite, run, rows, style, out)
            if as_json:
                show.as_json({"out": str(out), **written})
            else:
                typer.echo(f"{', '.join(f'{count} {what}' for what, count in written.items())} in {out}")
            return
        with output_file(out) as file:
            if style is ResultsFormat.parquet:
                write_parquet([rows], file)
            elif style is ResultsFormat.csv:
                write_csv([rows], file, spreadsheet_safe=True)
            else:
                file.write(as_junit(run_id, suite, rows).encode())
    except OSError as error:
        raise LakeError(f"cannot write the results to {out}: {error.strerror}") from error
    if as_json:
        show.as_json({"out": str(out), "rows": rows.height})
    else:
        typer.echo(f"{rows.height} rows in {out}")


def _export_to_tool(
    lake: "Lake", suite: "Suite", run: Mapping[str, Any], rows: "DataFrame", style: ResultsFormat, out: Path
) -> dict[str, Any]:
    """Write a folder of files that another tool reads; returns what was written, by kind."""
    from evalake.admin.export_results import tool_results
    from evalake.suites.declared.formats import written

    counts = {"logs": 0, "answers": 0, "left out": 0}
    make_folder(out)
    for number, results in enumerate(tool_results(lake, suite, run, rows), start=1):
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
        write_file(
            place.with_name(f"{place.name}.json"), dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
        )
    return {what: count for what, count in counts.items() if count or what != "left out"}
