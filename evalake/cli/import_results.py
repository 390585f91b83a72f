"""`evalake import`: take recorded results into the lake."""

from collections.abc import Mapping, Sequence
from json import loads as decode
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.options import FullOption, JsonOption, takes
from evalake.core.errors import UsageError
from evalake.core.redaction import visible
from evalake.request import RunRequest

if TYPE_CHECKING:
    from evalake.sdk import Suite
    from evalake.storage.lake import Lake

MOST_PLACES = 20
MOST_FIGURES = 4


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("import")(import_)


@takes("max_missing", "accept_unreadable", "tags", "note", "configuration_file", "lake")
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
    full: FullOption = False,
    json: JsonOption = False,
) -> None:
    """Import results, of another tool or recorded: scored, audited and measured like a run, without any call."""
    from evalake.admin.import_results import import_recorded, import_samples, import_tool_results
    from evalake.cli.configuration import read
    from evalake.storage.lake import Lake
    from evalake.suites.declared.formats.detect import KNOWN, read_tool_results
    from evalake.suites.registry import suite as find_suite
    from evalake.suites.registry import suite_names, suite_of_task
    from evalake.tasks.coverage import tolerance_of_request
    from evalake.tasks.runtime.runs import labels_of

    request = RunRequest(suite or "", **asked)
    where, labels = Lake(request.lake), labels_of(request.tags, request.note)
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
    parameters = decode(run["parameters"] or "{}")
    if "tools" not in parameters:
        return
    from evalake.sdk.tool_results import Headline

    figures = [Headline(**each) for each in parameters["headlines"]]
    known = [each for each in figures if each.ours is not None]
    others = [f"{each.name}: {each.said} there, {each.ours} here" for each in known if not each.agrees]
    unknown = sorted({each.name.partition(" ")[0] for each in figures if each.ours is None})
    words = "; ".join(f"{each.name} = {each.said:g}" for each in known[:MOST_FIGURES])
    verdict = f"differ: {'; '.join(others)}" if others else f"are equal here ({words})"
    tools = ", ".join(parameters["tools"])
    if known:
        typer.echo(visible(f"figures of {tools}: {len(known) - len(others)} of {len(known)} {verdict}"))
    if unknown:
        typer.echo(visible(f"not recomputed: {', '.join(unknown)}"))
    for what, count in sorted(parameters["left_over"].items()):
        typer.echo(visible(f"not kept: {count} {what}"))


def _print_folders(run: dict[str, Any]) -> None:
    """Print what was read of folders, and file by file what was left out, where there were any."""
    import polars as pl

    from evalake.cli import output as show

    parameters = decode(run["parameters"] or "{}")
    read: dict[str, int] = parameters.get("folders", {})
    if not read:
        return
    show.table(pl.DataFrame({"folder": list(read), "files read": list(read.values())}))
    for reason, places in parameters["left_out"].items():
        typer.echo(f"\nleft out, {reason}: {len(places)}")
        for place in places[:MOST_PLACES]:
            typer.echo(f"  {visible(place)}")
        if len(places) > MOST_PLACES:
            typer.echo(f"  … and {len(places) - MOST_PLACES} more")
    typer.echo("")
