"""The samples of a run for people at a terminal: their table, and one with every model's conversation and verdict."""

import json
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Any

import polars as pl

from evalake.cli import output
from evalake.cli.configuration import command, trusting
from evalake.cli.options import Format
from evalake.core.errors import UsageError, did_you_mean
from evalake.reports.report import Subject
from evalake.reports.wording import one_line, short_names, visible
from evalake.server.viewer.conversation import CallView
from evalake.server.viewer.item import Detail, Fact, ItemDetail, item_detail
from evalake.server.viewer.items import AnswerView, ItemView, Wanted, WantedPage, item_page
from evalake.server.viewer.run_index import RunIndex, RunIndexes
from evalake.tasks.runtime.runs import run_row

PAGE = 500
SHORTEST_HASH = 8
"""The least characters of a sample's hash."""

LONGEST_VERDICT = 16
LEAST_INPUT = 8


def index_of(indexes: RunIndexes, run: str) -> RunIndex:
    """Return the index of a run. Raises UsageError for an unknown run."""
    run_row(indexes.lake, run)
    return indexes.of(run)


def print_list(indexes: RunIndexes, index: RunIndex, wanted: WantedPage, limit: int, lake: str, style: Format) -> None:
    """Print the answers to the wanted items, or a table of `limit` items."""
    if style is not Format.table:
        output.rows(_answers(item for page in _pages(indexes, index, wanted) for item in page.items), style)
        return
    page = next(_pages(indexes, index, wanted))
    if index.run["message"]:
        for line in wrap(f"! {index.run['message']}", output.width(), subsequent_indent="  "):
            output.line(line)
    if not page.items:
        output.line("no sample matches")
        return
    shown = [item for each in _pages(indexes, index, wanted, limit) for item in each.items][:limit]
    output.lines(_table(shown), least=LEAST_INPUT, hint="--model NAMES shows fewer models, --format json has all")
    more = f" of {page.total:,} (--limit N shows more)" if page.total > len(shown) else ""
    mark = "; ✗ wrong" if any(answer.correct is False for item in shown for answer in item.answers) else ""
    output.line(f"\n{len(shown):,} samples{more}{mark}")
    output.line(f"read one: {trusting(command('show', index.run['run_id'], shown[0].sample_id, lake=lake))}")


def _pages(indexes: RunIndexes, index: RunIndex, wanted: WantedPage, limit: int | None = None) -> Iterator[Any]:
    """Read pages of the wanted items, for at most `limit` items."""
    read, after = 0, None
    while True:
        page = item_page(indexes, index.run["run_id"], wanted.model_copy(update={"after": after}))
        yield page
        read, after = read + len(page.items), page.next
        if after is None or (limit is not None and read >= limit):
            return


def _answers(items: Iterator[ItemView]) -> pl.DataFrame:
    """Build a row for each answer to each item."""
    own = [name for name in ItemView.model_fields if name != "answers"]
    fields = [*own, *AnswerView.model_fields]
    rows = [{**item.model_dump(include=set(own)), **answer.model_dump()} for item in items for answer in item.answers]
    return pl.DataFrame(rows, infer_schema_length=None).select(fields) if rows else pl.DataFrame(schema=fields)


def _table(items: Sequence[ItemView]) -> pl.DataFrame:
    """Build a row for each item, prompt type and repeat, with a column for each model and judge."""
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


def _verdict(answer: AnswerView) -> str:
    """Write the verdict of an answer in one word, and whether it is wrong."""
    word = answer.verdict or answer.error or "no answer"
    if answer.score is not None:
        word = f"{answer.score:g}"
    return f"{word} ✗" if answer.correct is False else word


def print_one(
    indexes: RunIndexes,
    index: RunIndex,
    sample: str,
    wanted: WantedPage,
    lake: str,
    style: Format,
    *,
    full: bool,
) -> None:
    """Print one sample. Raises UsageError where none or several have this name."""
    if style is Format.csv:
        raise UsageError("one sample is printed as text or JSON: use --format json")
    chosen = Wanted(**wanted.model_dump(include=set(Wanted.model_fields)))
    item = item_detail(indexes, index.run["run_id"], hash_of(index, sample), chosen)
    if style is Format.json:
        output.as_json(item.model_dump())
        return
    answers = [answer for answer in item.answers if not wanted.model or answer.model in wanted.model]
    for line in transcript(item, answers, output.width(), full=full):
        output.line(line)
    if item.next is not None:
        following = index.samples.filter(sample_hash=item.next)["sample_id"][0]
        options = ["--model", ",".join(wanted.model)] if wanted.model else []
        options += ["--wrong"] * (wanted.correct == "false") + ["--differ"] * bool(wanted.differ)
        output.line(f"\nnext: {trusting(command('show', index.run['run_id'], following, *options, lake=lake))}")


def hash_of(index: RunIndex, name: str) -> str:
    """Find the hash of the sample with this name. Raises UsageError without a match or with several."""
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


SHORT, REQUEST = 40, 6
"""Lines of a text and of a request without --full."""


def transcript(item: ItemDetail, answers: Sequence[Detail], width: int, *, full: bool) -> Iterator[str]:
    """Write a sample with these answers, in lines of at most `width` characters."""
    number = "" if item.number is None else f", {item.number:,} of {item.total:,}"
    yield from _text(f"{item.suite} run {item.run_id}: sample {item.dataset}/{item.sample_id}{number}", width)
    yield "\nINPUT"
    yield from _block(item.input_text, width, SHORT, full=full)
    yield "\nGROUND TRUTH"
    for name in ("label", "category", "severity", "difficulty", "note"):
        if (value := getattr(item, name)) is not None:
            yield from _text(f"{name}: {value}", width)
    if item.target is not None:
        yield from _block(_readable(item.target), width, SHORT, full=full)
    calls = {call.call_id: call for call in item.calls}
    printed: set[str] = set()
    for answer in answers:
        yield ""
        yield from _answer(answer, calls, printed, width, full=full)


def _answer(answer: Detail, calls: dict[str, CallView], printed: set[str], width: int, *, full: bool) -> Iterator[str]:
    which = "" if answer.replicate == 0 else f", repeat {answer.replicate}"
    asked = "" if answer.prompt_type == "direct" else f", {answer.prompt_type}"
    judged = "" if answer.judge is None else f", judged by {answer.judge}"
    right = {True: ", right", False: ", WRONG", None: ""}[answer.correct]
    score = "" if answer.score is None else f" {answer.score:g}"
    yield from _rule(
        f"{answer.model}{judged}{asked}{which}: {answer.verdict or answer.error or 'no answer'}{score}{right}", width
    )
    for call in (calls[call_id] for call_id in answer.calls):
        yield from _call(call, printed, width, full=full)
    for fact in answer.values:
        yield from _fact(fact, width, full=full)
    for number, detail in enumerate(answer.details, start=1):
        yield f"{number}."
        for fact in detail:
            yield from (f"  {line}" for line in _fact(fact, width - 2, full=full))


def _call(call: CallView, printed: set[str], width: int, *, full: bool) -> Iterator[str]:
    """Write a request and its reply, without the messages that an earlier answer has shown."""
    if call.call_id in printed:
        yield from _text(f"{call.by} {call.model}: as above", width)
        return
    printed.add(call.call_id)
    for message in call.messages:
        if (passage := f"{call.by} {message.role}\n{message.content}") not in printed:
            printed.add(passage)
            yield f"{call.by} is asked ({one_line(message.role, 40)}):"
            yield from _block(message.content, width, REQUEST, full=full)
    if call.error is not None or call.error_kind is not None:
        yield from _text(f"{call.by} {call.model} gave no reply: {call.error_kind}: {call.error or ''}", width)
    if call.thinking:
        yield f"{call.by} thinks:"
        yield from _block(call.thinking, width, REQUEST, full=full)
    tools = "\n".join(f"{tool.name} {tool.arguments}" for tool in call.tool_calls)
    for what, said in (("refuses", call.refusal), ("calls tools", tools or None)):
        if said is not None:
            yield f"{call.by} {what}:"
            yield from _block(said, width, SHORT, full=full)
    if call.answer is not None:
        yield from _text(f"{call.by} {call.model} says:", width)
        yield from _block(call.answer, width, SHORT, full=full)


def _fact(fact: Fact, width: int, *, full: bool) -> Iterator[str]:
    if fact.value is None or fact.value == []:
        return
    value = _word(fact.value)
    if "\n" in value:
        yield f"{fact.label}:"
        yield from _block(value, width, SHORT, full=full)
    else:
        yield from _text(f"{fact.label}: {value}", width)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _readable(target: str) -> str:
    """Write a ground truth, with JSON over several lines."""
    try:
        return json.dumps(json.loads(target), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        return target


def _rule(title: str, width: int) -> Iterator[str]:
    yield "─" * width
    yield from _text(title, width)


def _block(text: str, width: int, most: int, *, full: bool) -> Iterator[str]:
    """Write an indented text; a long one is cut, with the number of left-out lines."""
    lines = [part for line in _safe(text).split("\n") for part in _folded(line, width - 2)]
    kept = lines if full or len(lines) <= most + 2 else lines[:most]
    yield from (f"  {line}".rstrip() for line in kept)
    if len(kept) < len(lines):
        yield f"  … {len(lines) - len(kept):,} more lines (--full)"


def _text(text: str, width: int) -> Iterator[str]:
    """Write a sentence over several lines."""
    yield from wrap(_safe(text).replace("\n", " "), width, subsequent_indent="  ")


def _folded(line: str, width: int) -> list[str]:
    wrapped = wrap(line, width, replace_whitespace=False, drop_whitespace=False, break_on_hyphens=False)
    return wrapped or [""]


def _safe(text: str) -> str:
    return visible(text, len(text)).expandtabs(4)
