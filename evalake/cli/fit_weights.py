"""`evalake fit-weights`: fits the weights of an index to people's ranking of models."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from evalake.cli.options import LAKE, JsonOption, LakeOption


def fit_weights(
    ranking: Annotated[Path, typer.Argument(help="CSV with the columns model and rank, 1 the best.", metavar="FILE")],
    run: Annotated[
        str | None, typer.Option("--run", help="The run with the models; default: the newest.", metavar="ID")
    ] = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Fit the weights of a suite's index to a human ranking, and print the limits of the result."""
    import polars as pl

    from evalake.cli import output as show
    from evalake.storage.lake import Lake
    from evalake.tasks.calibrate import fit_to_ranking

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
