"""What a check may know besides the command it looks at: depth, budget, variables, and files written earlier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from suites.command_guard.baselines.shell_patterns.model import Command, Decision

MAX_DEPTH: Final = 6
"""Levels of code inside code that are followed."""
MAX_TEXT: Final = 8_192
"""Longer text is cut before a pattern is tried on it."""


@dataclass(slots=True)
class Scope:
    """Shared by all commands of one guarded text, nested code included."""

    judge_code: Callable[[str, Scope], Decision]
    depth: int = 0
    budget: int = 1_500
    """Commands that may still be looked at; nested code costs one for every 64 characters."""
    variables: dict[str, str] = field(default_factory=dict)
    planted: dict[str, str] = field(default_factory=dict)
    """Files that earlier commands wrote: path -> content."""
    fetched: set[str] = field(default_factory=set)
    """Files that earlier commands saved from another machine."""
    folder: str = ""
    """Where an earlier `cd` went, "" when nowhere known."""

    def judge(self, code: str) -> Decision:
        """Judge shell code that the current command would run."""
        if self.depth >= MAX_DEPTH:
            return block("nested-too-deep", "Code is nested in code more deeply than honest work needs.", 0.7)
        self.budget -= len(code) // 64
        if self.budget <= 0:
            return warn("too-many-commands", "There is too much code to look at it all.", 0.5)
        self.depth += 1
        try:
            return self.judge_code(code, self)
        finally:
            self.depth -= 1


Check = Callable[[Command, Scope], Decision | None]


def block(rule: str, reason: str, confidence: float) -> Decision:
    """Block, by this rule, with its reason and the confidence in it, 0 to 1."""
    return Decision("BLOCK", reason, confidence, rule)


def warn(rule: str, reason: str, confidence: float) -> Decision:
    """Warn, by this rule, with its reason and the confidence in it, 0 to 1."""
    return Decision("WARN", reason, confidence, rule)
