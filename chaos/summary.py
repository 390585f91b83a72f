"""What campaigns came to, for a terminal of 80 columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import fill

from chaos.outcome import Outcome

WIDTH = 80
INDENT = 9


@dataclass(frozen=True)
class Took:
    """A campaign, how long it took, and what it came to."""

    name: str
    seconds: float
    outcomes: Sequence[Outcome]

    @property
    def injected(self) -> int:
        """How many faults were injected."""
        return sum(outcome.injected for outcome in self.outcomes)

    @property
    def held(self) -> bool:
        """Whether all of it held."""
        return not any(outcome.broken for outcome in self.outcomes)


def told(took: Took) -> str:
    """List a campaign's faults, how often each was injected, and below what held or not, once for equal outcomes."""
    lines = [f"{took.name}, {took.seconds:.0f} s"]
    for (held, broken), outcomes in groupby(took.outcomes, lambda outcome: (outcome.held, outcome.broken)):
        lines += [_wrapped(f"{each.injected:>7,}  {each.fault}") for each in outcomes]
        lines.append(_wrapped(" " * INDENT + (f"NOT HELD: {broken}" if broken else held)))
    return "\n".join(lines)


def summary(campaigns: Sequence[Took]) -> str:
    """Write a line for each campaign, and one for all."""
    everything = Took(
        "all together", sum(each.seconds for each in campaigns), [o for c in campaigns for o in c.outcomes]
    )
    return "\n".join(("", *(_line(each) for each in (*campaigns, everything))))


def _line(took: Took) -> str:
    held = "held" if took.held else "NOT HELD"
    return f"{took.name:<13} {took.seconds:>6,.0f} s {took.injected:>9,} times  {held}"


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, subsequent_indent=" " * INDENT, break_on_hyphens=False)
