"""Decide whether a value reaches a target, as far as its interval tells: PASS, FAIL, or UNDECIDED."""

import math
from dataclasses import dataclass
from enum import StrEnum

MOST_SAMPLES = 1_000_000
"""Nobody will take more, so that no number is named beyond."""


class Verdict(StrEnum):
    """What an interval says of a target."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict; where it is undecided, about how many more samples would settle it, None where nobody can say."""

    verdict: Verdict
    more_samples: int | None = None

    @property
    def text(self) -> str:
        """The verdict, and how many more samples it needs."""
        return self.verdict if self.more_samples is None else f"{self.verdict} +{self.more_samples:,}"


def decide(
    value: float, low: float | None, high: float | None, units: int, target: float, *, higher_is_better: bool = True
) -> Decision:
    """Decide by the interval: PASS where all of it reaches the target, FAIL where none does.

    The samples that are missing follow from the interval's end towards the target, which nears the value by the root of
    the number of units; they are about right where the value stays what it is.
    """
    if low is None or high is None:
        return Decision(Verdict.UNDECIDED)
    if low >= target if higher_is_better else high <= target:
        return Decision(Verdict.PASS)
    if high < target if higher_is_better else low > target:
        return Decision(Verdict.FAIL)
    reach, distance = (value - low if value > target else high - value), abs(value - target)
    more = units * ((reach / distance) ** 2 - 1) if distance else math.inf
    return Decision(Verdict.UNDECIDED, max(1, math.ceil(more)) if more <= MOST_SAMPLES else None)
