"""`evalake report`: writes the HTML page and the JSON of a run."""

from pathlib import Path
from typing import Annotated

import typer

from evalake.cli.options import LAKE, CorrectedOption, FullOption, JsonOption, LakeOption
from evalake.cli.terminal import say
from evalake.core.files import place_in


def report(
    run: Annotated[str, typer.Argument(help="The run; `evalake runs` lists them.", metavar="RUN")],
    out: Annotated[Path, typer.Option(help="The output folder.", metavar="DIR")] = Path("evalake-reports"),
    lake: LakeOption = LAKE,
    full: FullOption = False,
    json: JsonOption = False,
    corrected: CorrectedOption = False,
    folder: Annotated[
        bool, typer.Option("--folder", help="Write each figure as SVG, and as PNG where rsvg-convert is installed.")
    ] = False,
) -> None:
    """Print a run's summary and write its report: HTML with plots, and JSON."""
    from evalake.cli import output as show
    from evalake.cli.outcome import print_coverage
    from evalake.reports.console import Summary
    from evalake.reports.page import DATA, png_converter, write_page
    from evalake.storage.lake import Lake
    from evalake.tasks.report import build_report

    place = place_in(out, run)
    built = build_report(Lake(lake), run, corrected=corrected)
    page = write_page(built, place, figures=folder)
    if folder and png_converter() is None:
        say("the figures are SVG alone: rsvg-convert, which makes PNG of them, is not installed (Debian: librsvg2-bin)")
    if json:
        show.as_json({"run_id": run, "page": str(page), "data": str(page.with_name(DATA))})
        return
    show.console().print(Summary(built, whole=full))
    typer.echo(f"report: {page}")
    print_coverage(built.coverage)
