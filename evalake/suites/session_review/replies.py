"""Reads a judge's first answer: the total on its last line, the four category scores, and the analysis."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evalake.core.files import tables_beside

# Finds the named patterns of failure in a judge's analysis, and does not take a denial for a finding.


_WORDS: Final = tables_beside(__file__, "replies.toml")
FAILURE_TAGS: tuple[str, ...] = tuple(_WORDS["failures"])

_TAG = re.compile("|".join(f"(?P<{tag}>{tag.replace('_', '[ _-]')}s?)" for tag in FAILURE_TAGS), re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z']+")
_MARKS = str.maketrans("", "", "*#`|")
LONGEST_SENTENCE = 240  # characters of a sentence, and that are looked at on either side of a tag
_BEFORE, _AFTER = 160, 60  # characters that are looked at on either side

_NEGATIONS, _FILLERS = ({*_WORDS[kind].split()} for kind in ("negations", "fillers"))
_P: Final = {name: re.compile(text.replace("\n", "")) for name, text in _WORDS["patterns"].items()}


def read_failure_tags(analysis: str) -> list[str]:
    """Read the tags that the analysis finds, in the order of the vocabulary, without those that it only denies."""
    tags = {match.lastgroup for match in _found(analysis)}
    return [tag for tag in FAILURE_TAGS if tag in tags]


def read_failure_words(analysis: str) -> dict[str, list[str]]:
    """Read the sentences in which the analysis finds each tag, without the marks of lists and headings; each once."""
    words: dict[str, dict[str, None]] = {}
    for match in _found(analysis):
        assert match.lastgroup is not None
        before = _P["sentence_end"].split(analysis[max(0, match.start() - LONGEST_SENTENCE) : match.start()])[-1]
        after = _P["sentence_end"].split(analysis[match.end() : match.end() + LONGEST_SENTENCE])[0]
        sentence = " ".join(f"{before}{match[0]}{after}".translate(_MARKS).split()).lstrip("-+•. ")
        words.setdefault(match.lastgroup, {})[sentence[:LONGEST_SENTENCE]] = None
    return {tag: list(sentences) for tag, sentences in words.items()}


def _found(analysis: str) -> Iterator[re.Match[str]]:
    return (match for match in _TAG.finditer(analysis) if not _is_denied(analysis, match))


def _is_denied(text: str, match: re.Match[str]) -> bool:
    after = text[match.end() : match.end() + _AFTER]
    if _P["denied_after"].match(after):
        return True
    before = _TAG.sub(" ", text[max(0, match.start() - _BEFORE) : match.start()])
    clause = _P["clause_end"].split(before)[-1]
    for word in reversed(_WORD.findall(clause.casefold())):
        if word in _NEGATIONS or word.endswith("n't"):
            return not re.search(rf"\b{re.escape(word)}\W+only\b", clause, re.IGNORECASE)
        if word not in _FILLERS:
            return False
    return False


# Reads a judge's second answer: tools unused, absent or to be improved, with the reason, from lists of many forms.


MOST = 50  # tools that are read of one answer
LONGEST_NAME = 100  # characters
MOST_WORDS = 8  # of a name; what is longer is a sentence

UNUSED, ABSENT, IMPROVABLE = "unused", "absent", "improvable"
KINDS: Mapping[str, re.Pattern[str]] = {kind: re.compile(text) for kind, text in _WORDS["kinds"].items()}
"""What is said of a tool, and the words of the headings that say it."""

_NO_NAMES = {"none", "n-a"}


@dataclass(frozen=True, slots=True)
class MissingTool:
    """A tool that would have changed the analysis. `name` is in lower case with hyphens, so that it can be counted."""

    name: str
    rationale: str
    kind: str | None = None  # one of KINDS; None where the answer has no headings that tell


def read_missing_tools(answer: str | None) -> tuple[MissingTool, ...] | None:
    """Read the tools that the answer names, each once under a heading; empty where it says that none is missing.

    None where it says neither: then it is unknown whether tools are missing.
    """
    tools: dict[tuple[str, str | None], list[str]] = {}
    current: list[str] | None = None
    kind: str | None = None
    for line in (answer or "").splitlines():
        if headed := _headed(line):
            kind, current = headed, None
            continue
        item = _P["item"].fullmatch(line)
        named = None if item is None or (item[1] and current is not None) else _named(item[2].strip())
        text = line
        if named is not None:
            name, text = named
            if (name, kind) not in tools and len(tools) == MOST:
                break
            current = tools.setdefault((name, kind), [])
        if current is not None and (reason := _without(_P["reason_label"], text).strip(" \t*_:—–-")):
            current.append(reason)
    if tools:
        return tuple(MissingTool(name, " ".join(lines), of) for (name, of), lines in tools.items())
    return () if _P["none"].search((answer or "")[:2000]) else None


def missed(tools: Sequence[MissingTool]) -> list[str]:
    """List the names of tools that were missed, each once, without those that were used and could be better."""
    return list(dict.fromkeys(tool.name for tool in tools if tool.kind != IMPROVABLE))


def _headed(line: str) -> str | None:
    """Find the kind of tools that a heading announces; None for any other line."""
    if not _P["heading"].fullmatch(line.rstrip()):
        return None
    return next((kind for kind, words in KINDS.items() if words.search(line)), None)


def _named(item: str) -> tuple[str, str] | None:
    """Split an item into the name at its head and what follows it; None where the item begins with no name."""
    labelled = _without(_P["name_label"], item)
    if not labelled or _P["reason_label"].match(labelled):
        return None
    match = _P["bold"].match(labelled) or _P["code"].match(labelled) or _P["plain"].match(labelled)
    name, rest = (match[1], match[2]) if match else (labelled, "")
    canonical = tool_name(name)
    is_short = 0 < len(canonical) <= LONGEST_NAME and canonical.count("-") < MOST_WORDS
    fits = is_short and canonical.strip(".") not in _NO_NAMES
    return (canonical, rest) if fits else None


def _without(label: re.Pattern[str], text: str) -> str:
    match = label.match(text)
    return text[match.end() :] if match else text


def tool_name(name: str) -> str:
    """Normalise a name for counting: without marks, in lower case, words joined by hyphens."""
    return "-".join(re.findall(r"[a-z0-9.]+", name.casefold()))


ATTEMPTS = 3
CATEGORIES = ("logical_flow", "consistency", "tool_relevance", "synthesis_quality")
CATEGORY_POINTS = 25

LONGEST_LINE = 100  # characters of a line that could hold a total

HIGHEST = 100  # of a total

MOST_REMARKS = 3  # lines without a number that may follow the total

# A total, and behind it a remark in which no other number stands. A number alone may be the last point of a list.
_LABEL, _NUMBER = r"(?:#{1,6}\s*)?(?:total(?:\s+score)?|(?:final\s+)?score)\s*:\s*", r"([0-9]{1,3})"
_POINTS_WORD = r"\s*points?"
_OF, _REMARK = rf"\s*\(?(?:/|out of)\s*100(?:{_POINTS_WORD})?\)?", r"(?:\s*[.!,;:()\[\]–—-][^0-9]*)?"
_TOTAL = re.compile(
    rf"{_LABEL}{_NUMBER}(?:{_OF}|{_POINTS_WORD})?{_REMARK}|(?:#{{1,6}}\s*)?{_NUMBER}(?:{_OF}{_REMARK}|{_POINTS_WORD}{_REMARK}|"
    rf"\s*[.!,;:]?|\s*\([^0-9]*\)\.?|(?P<remark>\s*(?:[.,;:)-]\s+|[–—]\s*)[^0-9]+))",
    re.IGNORECASE,
)
LAST_LINE, LAST_NUMBER = "last_line", "last_number"
MODES = (LAST_LINE, LAST_NUMBER)
"""How a total is read: by the forms below, or also as the number at an answer's end, as TARSy's document has it."""

_EMPHASIS = str.maketrans("", "", "*`")
_MARKS_OF_TEXT = str.maketrans(dict.fromkeys('*_`"“”', " "))
_NAMES = {category: category.replace("_", "[ \t_-]+") for category in CATEGORIES}
_CATEGORY = "|".join(f"(?P<{category}>{name})" for category, name in _NAMES.items())
# At the start of a line: marks of headings, lists and tables, a number, then the category's name
_LINE = re.compile(rf"[\s#>|()_-]*(?:[0-9]{{1,2}}[.):]\s*)?(?:{_CATEGORY})(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FirstTurn:
    """What the first turn gave. `total` is None where none of the attempts ended in one."""

    total: int | None
    analysis: str | None
    categories: Mapping[str, int | None]

    @property
    def breakdown_consistent(self) -> bool | None:
        """Whether the four categories add up to the total; None where one of the five is unknown."""
        points = list(self.categories.values())
        if self.total is None or any(each is None for each in points):
            return None
        return sum(each for each in points if each is not None) == self.total


_SAYS_OF_100 = re.compile(r"(?:/|out of)\s*100(?![0-9])", re.IGNORECASE)


def read_total(answer: str | None, mode: str = LAST_LINE, *, is_cut: bool = False) -> int | None:
    """Read the total at the end of an answer; None where anything else stands there.

    Allowed are an integer from 0 to 100, alone or as `67/100`, and either after `Total:`, `Total score:`, `Score:` or
    `Final score:`; in any case, with emphasis, in a fence, and with the mark of a heading. Punctuation or a remark may
    follow, on the same line or below, where no other number stands in it, and the number is no point of a list. By
    LAST_NUMBER an answer may also end like `The total is 67`, `Total Score = 67` or `067`.

    In an answer that `is_cut` off only a total that says `/100` counts: any other number at its end may be the
    beginning of a larger one, or one of the analysis.
    """
    found = _find_total(answer or "", mode)
    if found is None or (is_cut and not _SAYS_OF_100.search((answer or "").splitlines()[found[1]])):
        return None
    return found[0]


def read_first_turn(answers: Sequence[str | None], mode: str = LAST_LINE, cut_off: Collection[int] = ()) -> FirstTurn:
    """Combine what the attempts of the first turn gave; those at the places `cut_off` did not come to their end.

    The analysis is the longest, whichever attempt gave the total; the line with the total is no part of it. The
    category scores are those of the answer with the total, or of the analysis where that answer lacks any.
    """
    analysis = max((_without_total(answer or "", mode) for answer in answers), key=len, default="")
    totals = [read_total(answer, mode, is_cut=place in cut_off) for place, answer in enumerate(answers)]
    total, decisive = next(((t, a) for t, a in zip(totals, answers, strict=True) if t is not None), (None, None))
    breakdown = read_categories(decisive or "")
    if None in breakdown.values():
        breakdown = read_categories(analysis)
    return FirstTurn(total, analysis or None, breakdown)


def read_categories(analysis: str) -> dict[str, int | None]:
    """Read the points of each category from its last `X/25`, on a line that begins with its name or on a later one."""
    points: dict[str, int | None] = dict.fromkeys(CATEGORIES)
    current: str | None = None
    for line in analysis.splitlines():
        plain = line.translate(_EMPHASIS)
        if match := _LINE.match(plain):
            current = match.lastgroup
            plain = plain[match.end() :]
        if current is not None and (scored := _P["points"].search(plain)):
            given = int(scored[1])
            points[current] = given if given <= CATEGORY_POINTS else None
            current = None
    return points


def _find_total(answer: str, mode: str) -> tuple[int, int] | None:
    """Find the total and the number of its line; None where the answer does not end in one."""
    lines = answer.splitlines()
    found = _last_line_total(lines)
    if found is None and mode == LAST_NUMBER and (match := _P["last"].search(answer)) and int(match[1]) <= HIGHEST:
        found = int(match[1]), len(answer[: match.end(1)].splitlines()) - 1
    return found


def _last_line_total(lines: Sequence[str]) -> tuple[int, int] | None:
    remarks = 0
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number].strip()
        if not line or _P["fence"].fullmatch(line):
            continue
        if (total := _total_of(line, _before(lines, number))) is not None:
            return total, number
        remarks += 1
        if remarks > MOST_REMARKS or any(character.isdigit() for character in line):
            return None
    return None


def _before(lines: Sequence[str], number: int) -> str:
    """Find the line with text before this one."""
    return next((line for line in reversed(lines[:number]) if line.strip()), "")


def _total_of(line: str, before: str) -> int | None:
    if len(line) > LONGEST_LINE:
        return None
    match = _TOTAL.fullmatch(_plain(line))
    if match is None:
        return None
    number = match[1] or match[2]
    total = int(number)
    if total > HIGHEST or number != str(total):
        return None
    return None if match["remark"] and _is_point_of_list(total, match["remark"], before) else total


def _is_point_of_list(number: int, remark: str, before: str) -> bool:
    """Tell whether a number with a remark continues a list, or may begin one; a larger one is no point of it."""
    begun = re.match(r"[0-9]+", _plain(before))
    if begun is not None and int(begun[0]) == number - 1:
        return True
    return number <= CATEGORY_POINTS and remark.lstrip()[0] not in "–—-"


def _plain(line: str) -> str:
    return " ".join(line.translate(_MARKS_OF_TEXT).split())


def _without_total(answer: str, mode: str) -> str:
    """Return the text before the line with the total, without the fence that it stands in."""
    found = _find_total(answer, mode)
    if found is None:
        return answer.strip()
    lines = answer.splitlines()[: found[1]]
    while lines and (not lines[-1].strip() or _P["fence"].fullmatch(lines[-1].strip())):
        lines.pop()
    return "\n".join(lines).strip()
