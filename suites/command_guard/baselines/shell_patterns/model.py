"""The small model of a shell script that the rules look at, and the guard's answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Action = Literal["ALLOW", "WARN", "BLOCK"]

SEVERITY: dict[Action, int] = {"ALLOW": 0, "WARN": 1, "BLOCK": 2}


@dataclass(frozen=True, slots=True)
class Decision:
    """The guard's answer: `reason` is one sentence, `confidence` is 0..1, `rule` is the id of the rule that decided."""

    action: Action
    reason: str
    confidence: float
    rule: str


@dataclass(frozen=True, slots=True)
class Word:
    """One shell word after quote removal; what cannot be known beforehand (`$X`, `$(…)`) stays as written."""

    text: str
    inner: tuple[Command, ...] = ()
    """Commands inside the word's command and process substitutions."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """`NAME=value`, alone or before a command."""

    name: str
    value: Word


@dataclass(frozen=True, slots=True)
class Redirect:
    """A file redirection such as `>` or `2>>`; here-documents are in `Command.stdin`."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Whether the file is written, not read."""
        return ">" in self.operator


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command with everything that the rules need to know about its surroundings."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    stdin: str | None = None
    """Text of a here-document or here-string."""
    upstream: tuple[Command, ...] = ()
    """Earlier stages of the same pipeline, first one first."""
    texts: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(word.text for word in self.words))

    @property
    def path(self) -> str:
        """The program as written, "" for a command of assignments or redirections only."""
        return self.texts[0] if self.texts else ""

    @property
    def name(self) -> str:
        """The program without its folder."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the program."""
        return self.texts[1:]


@dataclass(frozen=True, slots=True)
class Script:
    """All simple commands of a command line in reading order, those inside substitutions included."""

    commands: tuple[Command, ...]
    complete: bool
    """False when some of the text could not be understood or lies beyond a limit."""
