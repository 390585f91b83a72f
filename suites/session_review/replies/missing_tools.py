"""Reads a judge's second answer: the tools that were missing, each with the reason, from lists of many forms."""

import re
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
    r"\bno\b[^.\n]{0,40}\btools?\b[^.\n]{0,40}\b(?:missing|identified|needed|found)\b|\A\W{0,20}none\b\W{0,20}\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class MissingTool:
    """A tool that would have changed the analysis. `name` is in lower case with hyphens, so that it can be counted."""

    name: str
    rationale: str


def read_missing_tools(answer: str | None) -> tuple[MissingTool, ...] | None:
    """The tools that the answer names, each once; empty where it says that none is missing.

    None where it says neither: unknown is not none.
    """
    tools: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in (answer or "").splitlines():
        item = _ITEM.fullmatch(line)
        named = None if item is None or (item[1] and current is not None) else _named(item[2].strip())
        text = line
        if named is not None:
            name, text = named
            if name not in tools and len(tools) == MOST:
                break
            current = tools.setdefault(name, [])
        if current is not None and (reason := _without(_REASON_LABEL, text).strip(" \t*_:—–-")):
            current.append(reason)
    if tools:
        return tuple(MissingTool(name, " ".join(lines)) for name, lines in tools.items())
    return () if _NONE.search((answer or "")[:2000]) else None


def _named(item: str) -> tuple[str, str] | None:
    """The name at the head of an item, and what follows it; None where the item begins with no name."""
    labelled = _without(_NAME_LABEL, item)
    if not labelled or _REASON_LABEL.match(labelled):
        return None
    found = _BOLD.match(labelled) or _CODE.match(labelled) or _PLAIN.match(labelled)
    name, rest = (found[1], found[2]) if found else (labelled, "")
    canonical = tool_name(name)
    fits = 0 < len(canonical) <= LONGEST_NAME and canonical.count("-") < MOST_WORDS
    return (canonical, rest) if fits else None


def _without(label: re.Pattern[str], text: str) -> str:
    found = label.match(text)
    return text[found.end() :] if found else text


def tool_name(name: str) -> str:
    """A name as it is counted: without marks, in lower case, words joined by hyphens."""
    return "-".join(re.findall(r"[a-z0-9.]+", name.casefold()))
