"""Rules of a gate, a small declared grammar read into data, and the history of their decisions."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import GATE_DECISIONS
from evalake.core.errors import UsageError, did_you_mean
from evalake.core.hashing import content_hash
from evalake.decisions.sides import find_side
from evalake.reports.gate import Gate
from evalake.reports.ranking import FEWEST_UNITS
from evalake.storage.lake import Lake
from evalake.storage.landing import Landed, land

FORMS = (
    "METRIC >= NUMBER",
    "METRIC <= NUMBER",
    "METRIC >= NUMBER from N units",
    "no significant drop in METRIC",
    "no significant rise in METRIC",
    "no drop over NUMBER in METRIC",
    "no rise over NUMBER in METRIC",
)

PERCENT = 100

_METRIC = r"(?P<metric>[A-Za-z_]\w*)\s*(?:\[\s*(?P<slice>\w+)\s*=\s*(?P<part>[^\]]*?)\s*\])?"
_NUMBER = r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<percent>%)?"
_UNITS = r"(?:\s+from\s+(?P<units>\d+)\s+units?)?"
_LEVEL = re.compile(rf"{_METRIC}\s*(?P<sign>>=|<=)\s*{_NUMBER}{_UNITS}")
_WORSE = rf"(?:significant\s+(?P<way>drop|rise)|(?P<by>drop|rise)\s+over\s+{_NUMBER})"
_CHANGE = re.compile(rf"no\s+{_WORSE}\s+in\s+{_METRIC}{_UNITS}")


@dataclass(frozen=True, slots=True)
class Target:
    """The metric and the part of the samples that a rule is about."""

    metric: str
    slice: str = "all"
    slice_value: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """A value must reach a number: be at least it, or at most."""

    text: str
    target: Target
    number: float
    at_least: bool
    fewest: int = FEWEST_UNITS
    """Fewer units than these never pass."""


@dataclass(frozen=True, slots=True)
class Change:
    """A value must not be worse than the baseline's: not significantly, or, with `margin`, not by more than that."""

    text: str
    target: Target
    down: bool
    """Whether less is worse: a drop is forbidden; else a rise."""
    margin: float | None
    fewest: int = FEWEST_UNITS
    """Fewer units than these never pass."""


Rule = Level | Change


def read_rule(text: str) -> Rule:
    """Read one rule. Raises UsageError where it has none of the forms."""
    stripped = " ".join(text.split())
    if match := _LEVEL.fullmatch(stripped):
        return Level(stripped, _target(match), _number(match), match["sign"] == ">=", _fewest(match))
    if match := _CHANGE.fullmatch(stripped):
        margin = None if match["number"] is None else _number(match)
        if margin is not None and margin < 0:
            raise UsageError(f'the rule "{stripped}" allows a change of {margin:g}: a margin is 0 or more')
        return Change(stripped, _target(match), (match["way"] or match["by"]) == "drop", margin, _fewest(match))
    forms = "; ".join(FORMS)
    raise UsageError(f'the rule "{stripped}" has none of the forms {forms} (METRIC may be METRIC[SLICE=VALUE])')


def require_known(rule: Rule, known: Collection[Target]) -> None:
    """Refuse a rule about an unmeasured metric. Raises UsageError that names the measured ones."""
    target = rule.target
    if target in known:
        return
    metrics = sorted({each.metric for each in known})
    if target.metric not in metrics:
        hint = did_you_mean(target.metric, metrics) or "."
        raise UsageError(f'the rule "{rule.text}" names no metric that was measured{hint} Known: {", ".join(metrics)}')
    slices = sorted({each.slice for each in known if each.metric == target.metric})
    if target.slice not in slices:
        listed = ", ".join(slices)
        raise UsageError(f'the rule "{rule.text}": {target.metric} has no slice {target.slice}, but {listed}')
    parts = sorted(each.slice_value for each in known if (each.metric, each.slice) == (target.metric, target.slice))
    raise UsageError(f'the rule "{rule.text}": {target.slice} has no {target.slice_value}, but {", ".join(parts)}')


def require_within(rule: Rule, ends: tuple[float, float]) -> None:
    """Refuse a number outside the metric's range: such a rule always passes, or never. Raises UsageError."""
    low, high = ends
    number = rule.number if isinstance(rule, Level) else rule.margin
    if number is None or (low <= number <= high if isinstance(rule, Level) else number <= high - low):
        return
    percent = f"; {number:g} percent is {number:g}%" if high == 1 < number <= PERCENT else ""
    raise UsageError(
        f'the rule "{rule.text}" decides nothing: {rule.target.metric} is between {low:g} and {high:g}{percent}'
    )


def _target(match: "re.Match[str]") -> Target:
    return Target(match["metric"]) if match["slice"] is None else Target(match["metric"], match["slice"], match["part"])


def _fewest(match: "re.Match[str]") -> int:
    return FEWEST_UNITS if match["units"] is None else int(match["units"])


def _number(match: "re.Match[str]") -> float:
    return float(match["number"]) / (PERCENT if match["percent"] else 1)


# The history of gates: each decision is kept, so that its page can show how it moved.

NUMBERS = ("value", "difference", "ci_low", "ci_high", "units", "reason", "limit_low", "limit_high", "missing")


def keep(lake: Lake, held: Gate) -> Landed:
    """Land a gate's decisions; the same decision about the same snapshots lands once, with its first time.

    Raises LakeError where the lake cannot be written to.
    """
    side = find_side(lake, held.run, None)
    baseline = None if held.baseline is None else find_side(lake, held.baseline, None).snapshot["snapshot_id"]
    rows = []
    for check in held.checks:
        row = {
            "run_id": side.run["run_id"],
            "snapshot_id": side.snapshot["snapshot_id"],
            "suite": side.run["suite"],
            "baseline": held.baseline,
            "rule": check.rule,
            "model": check.model,
            "judge": check.judge,
            "verdict": str(check.decision.verdict),
            **{name: getattr(check, name) for name in NUMBERS},
            "reliable": check.is_reliable,
        }
        rows.append({**row, "decision_id": content_hash([*row.values(), baseline]), "decided_at": datetime.now(UTC)})
    return land(lake, GATE_DECISIONS, conform(rows, GATE_DECISIONS))
