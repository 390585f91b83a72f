"""Writes a sample for a terminal: input, ground truth, and each model's conversation with its verdict."""

import json
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from evalake.reports.wording import one_line, visible

if TYPE_CHECKING:
    from evalake.server.viewer.conversation import CallView
    from evalake.server.viewer.item import Detail, Fact, ItemDetail

SHORT, REQUEST = 40, 6
"""Lines of a text and of a request without --full."""


def transcript(item: "ItemDetail", answers: "Sequence[Detail]", width: int, *, full: bool) -> Iterator[str]:
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


def _answer(
    answer: "Detail", calls: "dict[str, CallView]", printed: set[str], width: int, *, full: bool
) -> Iterator[str]:
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


def _call(call: "CallView", printed: set[str], width: int, *, full: bool) -> Iterator[str]:
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


def _fact(fact: "Fact", width: int, *, full: bool) -> Iterator[str]:
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
