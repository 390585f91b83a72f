"""A measure: one figure, the bound it is held to, and what lies behind it."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Measure:
    """`bound` is the least the value may be where `at_least`, the most otherwise.

    A value is None where nothing could be measured; `behind` says why then.
    """

    name: str
    value: float | None
    bound: float
    at_least: bool
    unit: str  # "x" for a ratio
    behind: str  # the absolute figures, for people

    @property
    def kept(self) -> bool:
        """Whether the value keeps its bound. What could not be measured does not."""
        if self.value is None:
            return False
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def verdict(self) -> str:
        """The result against the bound, in a word or two."""
        if self.value is None:
            return "NOT MET"
        return "ok" if self.kept else "MISSED"


def report(measures: Sequence[Measure]) -> None:
    """Print the measures of one benchmark as one line of JSON."""
    print(json.dumps([asdict(measure) for measure in measures]))


def say(text: str) -> None:
    """Print to standard error how far the benchmark is."""
    print(text, file=sys.stderr, flush=True)
