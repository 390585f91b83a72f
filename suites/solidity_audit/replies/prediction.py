"""A direct audit -> verdict, confidence and findings, by rule: nobody is asked what can be read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from suites.base.json_in_text import as_share, number_of
from suites.base.lenient_json import find_object

KEYS = ("verdict", "findings")  # not confidence, which a finding of an audit that was cut off may state, too
VERDICTS: Mapping[str, bool] = {"vulnerable": True, "safe": False}
MOST_LINES = 10_000


@dataclass(frozen=True, slots=True)
class Claim:
    """One finding as the audit states it; None where it does not say, or not in the form that was asked for."""

    type: str | None
    severity: str | None
    location: str | None
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a structured audit says, and what was mended to read it; None where it cannot be read."""

    said_vulnerable: bool | None
    confidence: float | None  # 0 to 1
    findings: tuple[Claim, ...]
    mended: tuple[str, ...] = ()


def read_prediction(text: str | None) -> Prediction:
    """Read a structured audit. Never raises; what cannot be read is None."""
    found = find_object(text, KEYS) if text else None
    if found is None:
        return Prediction(None, None, ())
    value = found.value
    verdict, findings = value.get("verdict"), value.get("findings")
    is_vulnerable = VERDICTS.get(verdict.strip().lower()) if isinstance(verdict, str) else None
    claims = tuple(map(_claim, findings)) if isinstance(findings, list) else ()
    return Prediction(is_vulnerable, as_share(number_of(value.get("confidence"))), claims, found.mended)


def _claim(finding: Any) -> Claim:
    if not isinstance(finding, dict):
        return Claim(None, None, None, ())
    text = {name: v for name in ("type", "severity", "location") if isinstance(v := finding.get(name), str)}
    lines = finding.get("lines")
    stated = map(number_of, lines[:MOST_LINES]) if isinstance(lines, list) else ()
    numbers = tuple(n for n in stated if type(n) is int and 0 < n < 2**31)
    return Claim(text.get("type"), text.get("severity"), text.get("location"), numbers)
