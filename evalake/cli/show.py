"""`evalake show`: prints the samples of a run with every model's answer in the terminal."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.configuration import command, trusting
from evalake.cli.options import LAKE, Format, LakeOption, RowsAsJsonOption, StyleOption, names, style_of
from evalake.core.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from polars import DataFrame

    from evalake.server.viewer.items import AnswerView, ItemView, WantedPage
    from evalake.server.viewer.run_index import RunIndex, RunIndexes

PAGE = 500
SHORTEST_HASH = 8
"""The least characters of a sample's hash."""

LONGEST_VERDICT = 16
LEAST_INPUT = 8


def show(
    run: Annotated[str, typer.Argument(help="The run; `evalake runs` lists them.", metavar="RUN")],
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
    """List the samples of a run with each model's verdict; or print one: input, truth, conversations, judgements.

    JSON and CSV hold a line an answer, of every sample; of one sample, JSON holds everything.
    """
    from evalake.server.viewer.items import WantedPage
    from evalake.server.viewer.run_index import RunIndexes
    from evalake.storage.lake import Lake

    style = style_of(style, as_json=json)

    indexes = RunIndexes(Lake(lake))
    index = _index(indexes, run)
    models = names("--model", model) or []
    if unknown := [name for name in models if name not in index.run["models"]]:
        raise UsageError(f"the run has no model {unknown[0]}: there is {', '.join(index.run['models'])}")
    wanted = WantedPage(
        model=models, correct="false" if wrong else None, differ="models" if differ else None, limit=PAGE
    )
    if sample is None:
        _list(indexes, index, wanted, limit, lake, style)
    else:
        _read(indexes, index, sample, wanted, lake, style, full=full)


def _index(indexes: "RunIndexes", run: str) -> "RunIndex":
    """Return the index of a run. Raises UsageError for an unknown run."""
    from evalake.server.errors import NotFoundError
    from evalake.tasks.runtime.runs import no_run

    try:
        return indexes.of(run)
    except NotFoundError as error:
        raise no_run(indexes.lake, run) from error


def _list(indexes: "RunIndexes", index: "RunIndex", wanted: "WantedPage", limit: int, lake: str, style: Format) -> None:
    from evalake.cli import output as show

    if style is not Format.table:
        show.rows(_answers(item for page in _pages(indexes, index, wanted) for item in page.items), style)
        return
    page = next(_pages(indexes, index, wanted))
    if index.run["message"]:
        for line in wrap(f"! {index.run['message']}", show.width(), subsequent_indent="  "):
            show.line(line)
    if not page.items:
        show.line("no sample matches")
        return
    shown = [item for each in _pages(indexes, index, wanted, limit) for item in each.items][:limit]
    show.lines(_table(shown), least=LEAST_INPUT, hint="--model NAMES shows fewer models, --format json has all")
    more = f" of {page.total:,} (--limit N shows more)" if page.total > len(shown) else ""
    mark = "; ✗ wrong" if any(answer.correct is False for item in shown for answer in item.answers) else ""
    show.line(f"\n{len(shown):,} samples{more}{mark}")
    show.line(f"read one: {trusting(command('show', index.run['run_id'], shown[0].sample_id, lake=lake))}")


def _pages(indexes: "RunIndexes", index: "RunIndex", wanted: "WantedPage", limit: int | None = None) -> Iterator[Any]:
    """Read pages of the wanted items, for at most `limit` items."""
    from evalake.server.viewer.items import item_page

    read, after = 0, None
    while True:
        page = item_page(indexes, index.run["run_id"], wanted.model_copy(update={"after": after}))
        yield page
        read, after = read + len(page.items), page.next
        if after is None or (limit is not None and read >= limit):
            return


def _answers(items: "Iterator[ItemView]") -> "DataFrame":
    """Build a row for each answer to each item."""
    import polars as pl

    from evalake.server.viewer.items import AnswerView, ItemView

    own = [name for name in ItemView.model_fields if name != "answers"]
    fields = [*own, *AnswerView.model_fields]
    rows = [{**item.model_dump(include=set(own)), **answer.model_dump()} for item in items for answer in item.answers]
    return pl.DataFrame(rows, infer_schema_length=None).select(fields) if rows else pl.DataFrame(schema=fields)


def _table(items: "Sequence[ItemView]") -> "DataFrame":
    """Build a row for each item, prompt type and repeat, with a column for each model and judge."""
    import polars as pl

    from evalake.reports.report import Subject
    from evalake.reports.wording import short_names

    answers = [answer for item in items for answer in item.answers]
    subjects = list(dict.fromkeys(Subject(answer.model, answer.judge) for answer in answers))
    one_judge = len({subject.judge for subject in subjects}) == 1
    briefs = [Subject(subject.model).brief if one_judge else subject.brief for subject in subjects]
    headings = dict(zip(subjects, short_names(briefs, LONGEST_VERDICT), strict=True))
    several = len({(answer.prompt_type, answer.replicate) for answer in answers}) > 1
    rows: list[dict[str, Any]] = []
    for item in items:
        asked = dict.fromkeys((answer.prompt_type, answer.replicate) for answer in item.answers)
        for prompt_type, replicate in asked:
            cells = {
                headings[Subject(answer.model, answer.judge)]: _verdict(answer)
                for answer in item.answers
                if (answer.prompt_type, answer.replicate) == (prompt_type, replicate)
            }
            which = {"asked": f"{prompt_type} {replicate}"} if several else {}
            rows.append({"sample": item.sample_id, **which, "label": item.label, **cells, "input": item.input})
    columns = ["sample", *(["asked"] if several else []), "label", *headings.values(), "input"]
    return pl.DataFrame([{name: row.get(name) for name in columns} for row in rows], infer_schema_length=None)


def _verdict(answer: "AnswerView") -> str:
    """Write the verdict of an answer in one word, and whether it is wrong."""
    word = answer.verdict or answer.error or "no answer"
    if answer.score is not None:
        word = f"{answer.score:g}"
    return f"{word} ✗" if answer.correct is False else word


def _read(
    indexes: "RunIndexes",
    index: "RunIndex",
    sample: str,
    wanted: "WantedPage",
    lake: str,
    style: Format,
    *,
    full: bool,
) -> None:
    from evalake.cli import output as show
    from evalake.cli.transcript import transcript
    from evalake.server.viewer.item import item_detail
    from evalake.server.viewer.items import Wanted

    if style is Format.csv:
        raise UsageError("one sample is printed as text or JSON: use --format json")
    chosen = Wanted(**wanted.model_dump(include=set(Wanted.model_fields)))
    item = item_detail(indexes, index.run["run_id"], hash_of(index, sample), chosen)
    if style is Format.json:
        show.as_json(item.model_dump())
        return
    answers = [answer for answer in item.answers if not wanted.model or answer.model in wanted.model]
    for line in transcript(item, answers, show.width(), full=full):
        show.line(line)
    if item.next is not None:
        following = index.samples.filter(sample_hash=item.next)["sample_id"][0]
        options = ["--model", ",".join(wanted.model)] if wanted.model else []
        options += ["--wrong"] * (wanted.correct == "false") + ["--differ"] * bool(wanted.differ)
        show.line(f"\nnext: {trusting(command('show', index.run['run_id'], following, *options, lake=lake))}")


def hash_of(index: "RunIndex", name: str) -> str:
    """Find the hash of the sample with this name. Raises UsageError without a match or with several."""
    import polars as pl

    whole = pl.concat_str("dataset", pl.lit("/"), "sample_id")
    is_named = (pl.col("sample_id") == name) | (whole == name)
    if len(name) >= SHORTEST_HASH:
        is_named |= pl.col("sample_hash").str.starts_with(name)
    samples = index.samples.filter(is_named)
    if samples.is_empty():
        hint = did_you_mean(name, index.samples["sample_id"]) or ": `evalake show RUN` lists them"
        raise UsageError(f"the run {index.run['run_id']} has no sample {name}{hint}")
    if samples.height > 1:
        several = samples.select(whole)[:, 0].to_list()
        raise UsageError(f"{name} is {samples.height} samples: name one of {', '.join(several[:5])}, or its hash")
    return str(samples["sample_hash"][0])
