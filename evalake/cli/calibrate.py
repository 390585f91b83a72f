"""`evalake calibrate`: measures judges on items of known judgement."""

from typing import Annotated

import typer

from evalake.cli import options
from evalake.cli.environment import flows_begun, start_server
from evalake.cli.terminal import say


def calibrate(
    judges: Annotated[str, typer.Option(help="The judges, by comma.", metavar="NAMES")],
    suite: Annotated[
        str | None,
        typer.Option(help="The suite with the calibration set; default: the first with one.", metavar="SUITE"),
    ] = None,
    config: options.ConfigOption = None,
    lake: options.LakeOption = options.LAKE,
    style: options.StyleOption = options.Format.table,
    json: options.RowsAsJsonOption = False,
) -> None:
    """Measure judges on items of known judgement; the ledger answers known calls."""
    import polars as pl

    from evalake.cli import output as show
    from evalake.tasks.calibrate import calibrated_suites

    style = options.style_of(style, as_json=json)

    chosen = options.suite_with("calibration set", calibrated_suites(), suite)
    wanted = options.names("--judges", judges) or []
    say("starting Prefect …")
    server = start_server()

    from evalake.flows.calibrate import calibrate as flow

    with flows_begun(server):
        rows = flow(chosen, wanted, lake, str(config) if config else None)
    show.rows(pl.DataFrame(rows), style)
