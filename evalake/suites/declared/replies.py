"""How an answer is read from a reply: text, last line, JSON, regular expression, letter of a choice, number."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalake.sdk.json_in_text import split_thinking
from evalake.sdk.lenient_json import find_object
from evalake.suites.declared.formats.values import at
from evalake.suites.declared.parts import Kind, Reply
from evalake.suites.declared.texts import last_match

LONGEST = 400_000  # characters of a reply that are read
_NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?<=\d)(?:[eE][-+]?\d{1,3})?(?![\d])")
_FINAL = re.compile(rf"(?:\banswer\s*(?:is|[:=])|####)[\s:=*$€£(]*({_NUMBER.pattern})", re.IGNORECASE)
AT_END = ("last_line", "choice", "number")  # what stands at the end of a reply, which one that was cut off lacks


@dataclass(frozen=True, slots=True)
class Answer:
    """What was read of a reply: text, with a number or decoded JSON where it was read as that."""

    text: str | None
    value: Any = None
    unreadable: str | None = None  # why nothing was read, as a word
    mended: tuple[str, ...] = ()


def read_answer(reply: str | None, reading: Reply, *, is_cut: bool = False) -> Answer:
    """Read the answer from the text of a reply, outside of its thinking.

    In a reply that `is_cut` off, a number or a choice counts only where the reply calls it its answer and goes on.
    """
    if reading.read == "raw" and reply is not None:
        return Answer(reply[:LONGEST])
    said = split_thinking((reply or "")[:LONGEST])[0].strip()
    if not said:
        return Answer(None, unreadable="empty")
    if reading.read == "json":
        return _json(said, reading)
    is_cut = is_cut and reading.read in AT_END
    text = _of_cut_off(said, reading) if is_cut else _READ[reading.read](said, reading)
    if text is None and is_cut:
        return Answer(None, unreadable="cut_off")
    if text is None:
        return Answer(None, unreadable=f"no_{reading.read}")
    return Answer(text, number_of(text) if reading.read == "number" else text)


def _matched(said: str, reading: Reply) -> str | None:
    found = last_match(reading.pattern or "", said)
    if found is None:
        return None
    text = found[1] if found.re.groups else found[0]
    return None if text is None else text.strip()


def _of_cut_off(said: str, reading: Reply) -> str | None:
    """Find the number or choice that a reply calls its answer before its last word, which may be half of one."""
    before = re.sub(r"(?<!\S)\S+$", "", said)
    if reading.read == "number":
        return _last_number(_FINAL.findall(before))
    return _called_answer(before, reading.choices) if reading.read == "choice" else None


def _number(said: str, _: Reply) -> str | None:
    """Find the number that a reply calls its answer, the last one, or else the last number in it."""
    return _last_number(_FINAL.findall(said) or [match[0] for match in _NUMBER.finditer(said)])


def _last_number(numbers: Sequence[str]) -> str | None:
    return numbers[-1].replace(",", "").replace("−", "-") if numbers else None


def number_of(text: str) -> float | None:
    """Read a text that is a number, perhaps with a currency, a percent sign, or commas between thousands."""
    plain = text.strip().strip("$€£%").strip().replace(",", "").replace("−", "-")
    try:
        number = float(plain)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def choice_of(said: str, choices: Sequence[str]) -> str | None:
    """Find the one choice that a reply names: alone, after "answer", at the start of a line, or anywhere once."""
    one, bounded = _patterns(choices)
    spelled = {choice.casefold(): choice for choice in choices}
    alone = re.fullmatch(rf"{bounded}[\s*_`\"')\].:]*", said, re.IGNORECASE)
    if alone:
        return spelled[alone[1].casefold()]
    if called := _called_answer(said, choices):
        return called
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for line in (lines[-1], lines[0]):
        if begins := re.match(rf"{bounded}[*_`]*\s*(?:[).:\]]|$)", line, re.IGNORECASE):
            return spelled[begins[1].casefold()]
    standing = {*re.findall(rf"(?<![\w'’])({one})(?![\w'’])", said)}
    standing -= {"A", "I"} if len(said.split()) > 3 else set()
    return standing.pop() if len(standing) == 1 else None


def _patterns(choices: Sequence[str]) -> tuple[str, str]:
    """Write the patterns of one choice, and of one with marks before it that is no part of a word."""
    one = "|".join(re.escape(choice) for choice in sorted(choices, key=len, reverse=True))
    return one, rf"[\s*_`\"'(\[]*({one})(?![\w'’])"


def _called_answer(said: str, choices: Sequence[str]) -> str | None:
    """Find the choice that a reply calls its answer, the last one."""
    _, bounded = _patterns(choices)
    named = re.finditer(rf"(?:answer|choice|option)(?:\s+is)?\s*+[:=]?{bounded}", said, re.IGNORECASE)
    meant = [match[1] for match in named if _is_no_word(match[1], said, match.end())]
    return {choice.casefold(): choice for choice in choices}[meant[-1].casefold()] if meant else None


_NO_WORD = re.compile(r"[*_`\"']*(?:\s*(?:[).,:;\]–—-]|$)|\s*\n|\s+(?:because|since)\b)")


def _is_no_word(letter: str, said: str, end: int) -> bool:
    """Tell whether a letter is meant as one: `A` and `I`, and small letters, go on with no further word."""
    is_letter = len(letter) > 1 or (letter.isupper() and letter not in "AI") or not letter.isalpha()
    return is_letter or _NO_WORD.match(said, end) is not None


def _json(said: str, reading: Reply) -> Answer:
    keys = [*reading.form, *([reading.field.split(".")[0]] if reading.field else [])]
    found = find_object(said, keys) if keys else None
    value: Any = found.value if found else None
    if not keys:
        value = any_json(said)
    if value is None:
        return Answer(None, unreadable="no_json")
    for name, kind in reading.form.items():
        if Kind.of(kind).value(value.get(name)) is None:
            return Answer(None, unreadable=f"no_{name}")
    if reading.field:
        value = at(value, reading.field)
        if value is None:
            return Answer(None, unreadable="no_json")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Answer(text, value, mended=found.mended if found else ())


def any_json(said: str) -> Any:
    """Decode a text that is JSON, perhaps in a fence; None where it is none."""
    fenced = re.search(r"```(?:json)?\s*(.*?)```", said, re.DOTALL)
    for text in (said, fenced[1] if fenced else ""):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            continue
    return None


_READ: Mapping[str, Callable[[str, Reply], str | None]] = {
    "text": lambda said, _: said,
    "last_line": lambda said, _: said.splitlines()[-1].strip(),
    "regex": _matched,
    "number": _number,
    "choice": lambda said, reading: choice_of(said, reading.choices),
}
