"""Reads the record of a session out of the judge's prompt."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from providers.baselines import BaselineRefusedError, Messages

_MARK = re.compile(r"\bthe mark ([0-9a-f]{32}) ")
_FAILED = re.compile(
    r"\b(?:error|failed|failure|forbidden|denied|unauthori[sz]ed|timed? ?out|refused|unavailable|no such|"
    r"cannot|not found|invalid)\b",
    re.IGNORECASE,
)
NO_RECORD = "the first user message holds no session to judge"
ERROR_LOOK = 120  # characters at the head of a result in which an error shows


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. `error` is the recorded one."""

    number: int
    name: str
    arguments: str
    result: str = ""
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether it brought nothing but an error."""
        head = self.result[:ERROR_LOOK].lstrip(" {[\"'")
        says_error = head.casefold().startswith(("error", 'result": "error', "failed", "permission denied"))
        return bool(self.error) or says_error or (len(self.result) < ERROR_LOOK and bool(_FAILED.match(head)))

    @property
    def empty(self) -> bool:
        """Whether it worked, and brought nothing."""
        return not self.failed and self.result.strip().casefold() in ("", "(nothing)", "[]", "{}", "null", "no results")


@dataclass(frozen=True)
class Record:
    """What a prompt tells of a session."""

    alert: str
    status: str
    runbook: str
    tools: Sequence[str]
    calls: Sequence[Call]
    agent_texts: Sequence[str]
    model_errors: int
    made_to_conclude: bool
    final_analysis: str

    @cached_property
    def useful(self) -> Sequence[Call]:
        """The calls that brought something."""
        return [call for call in self.calls if not call.failed and not call.empty]

    @cached_property
    def known(self) -> str:
        """All that the agent could know from outside itself, in one case-folded text."""
        sources = [self.alert, self.runbook, *(f"{call.arguments}\n{call.result}\n{call.error}" for call in self.calls)]
        return "\n".join(sources).casefold()


def read_record(messages: Messages) -> Record:
    """Read the record in the first user message. Raises BaselineRefusedError where there is none."""
    prompt = next((message["content"] for message in messages if message["role"] == "user"), "")
    marked = _MARK.search(prompt)
    if marked is None:
        raise BaselineRefusedError(NO_RECORD)
    mark = marked[1]
    alert, session = (_between(prompt, f"<{name} {mark}>\n", f"\n</{name} {mark}>") for name in ("alert", "session"))
    return _record(alert, _blocks(session, mark))


def _between(prompt: str, opening: str, closing: str) -> str:
    _, opened, rest = prompt.partition(opening)
    inside, closed, _ = rest.partition(closing)
    if not opened or not closed:
        raise BaselineRefusedError(NO_RECORD)
    return inside


def _blocks(session: str, mark: str) -> Sequence[tuple[str, str]]:
    """Split a session's text into headings and what stands under them."""
    end = f" [{mark}]"
    blocks: list[tuple[str, list[str]]] = []
    for line in session.split("\n"):
        if line.startswith("#") and line.endswith(end):
            blocks.append((line.removesuffix(end).lstrip("# "), []))
        elif blocks:
            blocks[-1][1].append(line)
    return [(heading, "\n".join(lines).strip()) for heading, lines in blocks]


def _record(alert: str, blocks: Sequence[tuple[str, str]]) -> Record:
    sections = dict(reversed(blocks))  # of equal headings the first
    calls: dict[int, Call] = {}
    agent_texts: list[str] = []
    model_errors = 0
    for heading, body in blocks:
        number_text, _, kind = heading.partition(" ")
        if not number_text.isdecimal():
            continue
        number = int(number_text)
        if kind.startswith("TOOL CALL "):
            calls[number] = Call(number, kind.removeprefix("TOOL CALL "), body)
        elif kind == "RESULT" and number in calls:
            calls[number] = replace(calls[number], result=body)
        elif kind == "ERROR" and number in calls:
            calls[number] = replace(calls[number], error=body)
        elif kind == "ERROR":
            model_errors += 1
        elif kind.startswith("AGENT "):
            agent_texts.append(body)
    facts = dict(line.split(": ", 1) for line in sections.get("SESSION", "").splitlines() if ": " in line)
    return Record(
        alert=alert,
        status=facts.get("status", "unknown"),
        runbook=sections.get("RUNBOOK", ""),
        tools=[_tool_name(line) for line in sections.get("TOOLS AVAILABLE", "").splitlines() if line.startswith("- ")],
        calls=list(calls.values()),
        agent_texts=agent_texts,
        model_errors=model_errors,
        made_to_conclude=any("MADE TO CONCLUDE" in heading for heading, _ in blocks),
        final_analysis="" if sections.get("FINAL ANALYSIS", "") == "(nothing)" else sections.get("FINAL ANALYSIS", ""),
    )


def _tool_name(line: str) -> str:
    return re.split(r"[: ]", line[2:], maxsplit=1)[0]
