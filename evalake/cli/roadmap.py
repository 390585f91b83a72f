"""`evalake roadmap`: groups the gaps of scored results by meaning, and ranks them by lost points."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from evalake.cli.environment import flows_begun, start_server
from evalake.cli.options import LAKE, ConfigOption, JsonOption, LakeOption, suite_with
from evalake.cli.terminal import say
from evalake.core.configuration import whole_address
from evalake.core.files import place_in

MOST = 20  # printed themes of each kind


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
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Group the gaps of scored results, like missing tools, and rank them by lost points.

    The ledger answers known calls, so the same results give the same roadmap at no cost.
    """
    from evalake.admin.roadmap import as_data, roadmap_suites, rows_of
    from evalake.cli import output as show

    name = suite_with("roadmap", roadmap_suites(), suite)
    say("starting Prefect …")
    server = start_server()

    from evalake.flows.roadmap import measure_roadmap
    from evalake.flows.roadmap import roadmap as flow
    from evalake.reports.page import write_roadmap
    from evalake.storage.lake import Lake

    file = str(config) if config else None
    if measure:
        with flows_begun(server):
            measured = measure_roadmap(name, judge, lake, file)
        if json:
            show.as_json(measured)
        else:
            _print_measured(measured)
        return
    with flows_begun(server):
        made = flow([name], judge, lake, file)
    data = as_data(rows_of(Lake(lake), made.get(name, "")))
    if json:
        show.as_json(data)
    elif data["roadmap_id"] is None:
        say(f"the lake {whole_address(lake)} has no scored results of {name} with gaps")
    else:
        _print(data)
        typer.echo(f"\nreport: {write_roadmap(data, place_in(out, data['roadmap_id'][:12]))}")


def _print(data: Mapping[str, Any]) -> None:
    """Print the most costly themes by kind."""
    import polars as pl

    from evalake.cli import output as show

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


def _print_measured(measured: Sequence[Mapping[str, Any]]) -> None:
    """Print the quality of grouping on a labelled set."""
    import polars as pl

    from evalake.cli import output as show

    rows = [{name.replace("_", " "): _rounded(value) for name, value in row.items()} for row in measured]
    show.table(pl.DataFrame(rows))


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
