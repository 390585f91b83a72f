"""A gate's verdicts on the models of a run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evalake.reports.ranking import FIXED, Decision, Verdict, fails_by_chance
from evalake.reports.report import Subject
from evalake.reports.wording import UNKNOWN, UNRELIABLE, one_line

LONGEST = 300
"""Characters of a name or a rule."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of one rule for one model, as one judge saw it."""

    rule: str
    model: str
    judge: str | None
    decision: Decision
    value: float | None = None
    baseline: float | None = None
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    """The interval of the difference where a rule is about one, else of the value."""
    limit_low: float | None = None
    limit_high: float | None = None
    """The limits that decide about a value: exact ones, and those for any missing values."""
    p_holm: float | None = None
    units: int | None = None
    missing: float = 0.0
    """The share of the items without an answer, a judgement or a decision; of both sides the larger."""
    is_reliable: bool = True
    reason: str | None = None

    @property
    def subject(self) -> str:
        """The model, and who judged it where somebody did."""
        return Subject(self.model, self.judge).name

    @property
    def detail(self) -> str:
        """The numbers that decided, and why where numbers do not say it."""
        return ", ".join(filter(None, (self._numbers(), self._limits(), self.marks, self._more(), self.reason)))

    @property
    def counted(self) -> str:
        """The number of units, with its mark where they are fewer than 30."""
        return UNKNOWN if self.units is None else f"{self.units:,}{'' if self.is_reliable else UNRELIABLE}"

    @property
    def marks(self) -> str:
        """The units, their mark where they are fewer than 30, and the share of missing items."""
        units = "" if self.units is None else f"{self.counted} unit{'' if self.units == 1 else 's'}"
        missing = f"{100 * self.missing:.1f}% missing" if self.missing else ""
        return ", ".join(filter(None, (units, missing)))

    def _numbers(self) -> str:
        ends = self._interval()
        if self.difference is None:
            return "unknown" if self.value is None else f"{_number(self.value)}{ends}"
        p = "" if self.p_holm is None else f" p {self.p_holm:.3f}"
        return f"{_number(self.baseline)} -> {_number(self.value)}: {self.difference:+.4g}{ends}{p}"

    def _limits(self) -> str:
        """Write the limits that decide, where they are not the interval."""
        if self.limit_low is None or self.limit_high is None or self.difference is not None:
            return ""
        limits = f"[{self.limit_low:.4g} {self.limit_high:.4g}]"
        return "" if f" {limits}" == self._interval() else f"decided by {limits}"

    def _interval(self) -> str:
        if self.ci_low is None or self.ci_high is None:
            return ""
        sign = "" if self.difference is None else "+"
        return f" [{self.ci_low:{sign}.4g} {self.ci_high:{sign}.4g}]"

    def _more(self) -> str:
        more, least = self.decision.more_samples, self.decision.more_at_least
        if more is None:
            return ""
        at_least = "" if least is None or least >= more else f" ({least:,} if the truth is at the far end)"
        units = "more unit" if more == 1 else "more units"
        power = "" if self.decision.reason else " for 80 % power"
        return f"{more:,} {units}{power}{at_least}"


@dataclass(frozen=True, repr=False)
class Gate:
    """All verdicts of a run, and what a reader must know of them."""

    run: str
    baseline: str | None
    checks: Sequence[Checked]
    warnings: Sequence[str]
    family: Sequence[str] = ()
    """How many checks may fail by chance alone."""

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the verdicts: warnings, the family of rules, and how to get more samples."""
        advised = any(check.decision.more_samples is not None for check in self.checks)
        return [*self.warnings, *self.family, *([FIXED] if advised else [])]

    @property
    def verdict(self) -> Verdict:
        """FAIL where anything fails, else UNDECIDED where anything is open, else PASS."""
        verdicts = {check.decision.verdict for check in self.checks}
        return next((each for each in (Verdict.FAIL, Verdict.UNDECIDED) if each in verdicts), Verdict.PASS)

    @property
    def exit_code(self) -> int:
        """0 where all pass, 1 where any fails, 3 where nothing fails but something is undecided."""
        return {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.UNDECIDED: 3}[self.verdict]

    @property
    def summary(self) -> str:
        """The verdict, and how many there are of each kind."""
        against = "" if self.baseline is None else f" against {short(self.baseline)}"
        return f"gate of {short(self.run)}{against}: {self.verdict} ({self.tally})"

    def __repr__(self) -> str:
        lines = [f"  {each.decision.verdict:<10}{each.rule}, {each.subject}: {each.detail}" for each in self.checks]
        return "\n".join([f"<{self.summary}>", *lines])

    @property
    def tally(self) -> str:
        """How many verdicts there are of each kind."""
        counts = Counter(check.decision.verdict for check in self.checks)
        return ", ".join(f"{counts[each]} {each}" for each in Verdict if counts[each])


def by_chance(levels: int, *, adjusted: bool) -> list[str]:
    """Say how many checks of level rules may fail, and pass, by chance alone, where there are several."""
    if levels <= 1:
        return []
    if adjusted:
        return [f"{levels} checks of level rules are held together to 2.5 % of a wrong FAIL, and of a wrong PASS"]
    return [
        f"{levels} checks of level rules: a model exactly at its number {fails_by_chance(levels)}; --adjust holds all "
        "together to the error of one"
    ]


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4g}"


def short(text: str) -> str:
    """Write a name on one line, without characters that hide or control other text."""
    return one_line(text, LONGEST)
