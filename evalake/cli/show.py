"""`evalake show`: prints the samples of a run, or one with every model's conversation and verdict."""

from typing import Annotated

import typer

from evalake.cli.help import App
from evalake.cli.options import (
    LAKE,
    Format,
    LakeOption,
    RowsAsJsonOption,
    RunArgument,
    StyleOption,
    names,
    style_of,
)
from evalake.core.errors import UsageError

app = App()


@app.command("show")
def show(
    run: RunArgument,
    sample: Annotated[
        str | None,
        typer.Argument(help="A sample by its name, DATASET/NAME, or the beginning of its hash.", metavar="SAMPLE"),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only these models, by comma.", metavar="NAMES")] = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="Only samples that a model got wrong.")] = False,
    differ: Annotated[bool, typer.Option("--differ", help="Only samples on which models differ.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="The most samples of the table.", metavar="N")] = 50,
    full: Annotated[bool, typer.Option("--full", help="Print long texts and requests in full.")] = False,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
) -> None:
    """List a run's samples with each model's verdict; or print one: input, truth, conversation, judgements.

    JSON and CSV hold a line an answer, of every sample; of one sample, JSON holds everything.
    """
    from evalake.cli.samples import PAGE, index_of, print_list, print_one
    from evalake.server.viewer.items import WantedPage
    from evalake.server.viewer.run_index import RunIndexes
    from evalake.storage.lake import Lake

    style = style_of(style, as_json=json)
    indexes = RunIndexes(Lake(lake))
    index = index_of(indexes, run)
    models = names("--model", model) or []
    if unknown := [name for name in models if name not in index.run["models"]]:
        raise UsageError(f"the run has no model {unknown[0]}: there is {', '.join(index.run['models'])}")
    wanted = WantedPage(
        model=models, correct="false" if wrong else None, differ="models" if differ else None, limit=PAGE
    )
    if sample is None:
        print_list(indexes, index, wanted, limit, lake, style)
    else:
        print_one(indexes, index, sample, wanted, lake, style, full=full)
