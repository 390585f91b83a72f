"""Reads a judge's second answer: tools unused, absent or to be improved, with the reason, from lists of many forms."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST = 50  # tools that are read of one answer
LONGEST_NAME = 100  # characters
MOST_WORDS = 8  # of a name; what is longer is a sentence

_ITEM = re.compile(r"([ \t]{0,8})(?:#{1,6}[ \t]+)?(?:[0-9]{1,3}[.)]|[-*+•])[ \t]+(.*)")
_BOLD = re.compile(r"[*_]{2}(.{1,200}?)[*_]{2}(.*)")
_CODE = re.compile(r"`([^`]{1,200})`(.*)")
_PLAIN = re.compile(r"([^:—–]{1,100}?)[ \t]*(?:[:—–]| - )(.*)")
_NAME_LABEL = re.compile(r"[*_ ]{0,4}(?:tool(?: name)?|name)[*_ ]{0,4}[:=][*_ ]{0,4}", re.IGNORECASE)
_REASON_LABEL = re.compile(r"[-*+•_ \t]{0,12}(?:rationale|reason|why)[*_ ]{0,4}[:=][*_ ]{0,4}", re.IGNORECASE)
_NONE = re.compile(
    r"\bno\b[^.\n]{0,40}\btools?\b[^.\n]{0,40}\b(?:missing|identified|needed|found)\b|^[\W0-9]{0,20}(?:none|n/a)\b\W{0,20}$",
    re.IGNORECASE | re.MULTILINE,
)

UNUSED, ABSENT, IMPROVABLE = "unused", "absent", "improvable"
KINDS: Mapping[str, re.Pattern[str]] = {
    UNUSED: re.compile(r"should have been used", re.IGNORECASE),
    ABSENT: re.compile(r"(?:do|does|did) not (?:yet )?exist|\b(?:missing|new) tools\b", re.IGNORECASE),
    IMPROVABLE: re.compile(r"could be improved|\bimprovements? (?:of|to)\b", re.IGNORECASE),
}
"""What is said of a tool, and the words of the headings that say it."""

_HEADING = re.compile(r"[ \t]{0,3}(?:#{1,6}[ \t]+|[*_]{2}|[0-9]{1,2}[.)][ \t]+){1,3}[^:\n]{1,60}?[ \t*_:]*")
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
        item = _ITEM.fullmatch(line)
        named = None if item is None or (item[1] and current is not None) else _named(item[2].strip())
        text = line
        if named is not None:
            name, text = named
            if (name, kind) not in tools and len(tools) == MOST:
                break
            current = tools.setdefault((name, kind), [])
        if current is not None and (reason := _without(_REASON_LABEL, text).strip(" \t*_:—–-")):
            current.append(reason)
    if tools:
        return tuple(MissingTool(name, " ".join(lines), of) for (name, of), lines in tools.items())
    return () if _NONE.search((answer or "")[:2000]) else None


def missed(tools: Sequence[MissingTool]) -> list[str]:
    """List the names of tools that were missed, each once, without those that were used and could be better."""
    return list(dict.fromkeys(tool.name for tool in tools if tool.kind != IMPROVABLE))


def _headed(line: str) -> str | None:
    """Find the kind of tools that a heading announces; None for any other line."""
    if not _HEADING.fullmatch(line.rstrip()):
        return None
    return next((kind for kind, words in KINDS.items() if words.search(line)), None)


def _named(item: str) -> tuple[str, str] | None:
    """Split an item into the name at its head and what follows it; None where the item begins with no name."""
    labelled = _without(_NAME_LABEL, item)
    if not labelled or _REASON_LABEL.match(labelled):
        return None
    match = _BOLD.match(labelled) or _CODE.match(labelled) or _PLAIN.match(labelled)
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
