"""`evalake power`: plans how many samples and repeats show a difference, before any cost."""

from typing import TYPE_CHECKING, Annotated

import typer

from evalake.cli.options import LAKE, Format, LakeOption, RowsAsJsonOption, StyleOption, style_of
from evalake.cli.terminal import say

if TYPE_CHECKING:
    from evalake.decisions.sample_size import Plan


def power(
    suite: Annotated[str, typer.Argument(help="The suite.", metavar="SUITE")],
    detect: Annotated[float, typer.Option("--detect", help="The difference of two models to find.", metavar="NUMBER")],
    metric: Annotated[
        str | None, typer.Option("--metric", help="The metric; default: the ranking one.", metavar="NAME")
    ] = None,
    chance: Annotated[
        float, typer.Option("--power", help="The chance to find a difference of that size.", metavar="SHARE")
    ] = 0.8,
    sd: Annotated[
        float | None,
        typer.Option("--sd", help="Assume this standard deviation of a sample's difference.", metavar="NUMBER"),
    ] = None,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
) -> None:
    """Plan samples and repeats from the variance in the lake's newest run of two models."""
    from evalake.cli import output as show
    from evalake.decisions.sample_size import plan
    from evalake.storage.lake import Lake

    style = style_of(style, as_json=json)

    planned = plan(Lake(lake), suite, detect, metric=metric, power=chance, sd=sd)
    if style is Format.table:
        _print(planned, detect, chance)
    else:
        for line in (f"assumed: {planned.assumed}", *planned.notes):
            say(line)
        show.rows(planned.rows, style)


def _print(planned: "Plan", detect: float, chance: float) -> None:
    from evalake.cli import output as show

    promise = f"found with {100 * chance:g} % power, at a two-sided level of 5 %, on the same samples"
    show.paragraph(f"{planned.suite}, {planned.metric}: a difference of {detect:g} between two models, {promise}")
    show.paragraph(f"assumed: {planned.assumed}")
    show.table(planned.rows)
    for note in planned.notes:
        show.paragraph(note)
