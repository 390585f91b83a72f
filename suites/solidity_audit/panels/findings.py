"""Findings of several judges, merged: which of them are one finding of the audit, and what most judges take it for.

In an audit that numbers its findings, as a direct prompt asks for, the number decides; otherwise the place and type
that judges name. What two judges both call the target is one finding, too: there is one target.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from contracts.contract import Row
from suites.solidity_audit.replies.location import lines_in, words_in
from suites.solidity_audit.taxonomy import CLASSIFICATIONS, INVALID, TARGET, VALID, count_column, normalised

NUMBERED = "direct"
"""The prompt type whose audits number their findings; judges keep the numbers."""


@dataclass
class Merged:
    """One finding of an audit, as the judges that saw it classified it."""

    by_judge: dict[str, Row] = field(default_factory=dict)

    @property
    def classes(self) -> dict[str, str]:
        """The classes that the judges gave it, in the order of the judges' names."""
        return {judge: row["classification"] for judge, row in sorted(self.by_judge.items())}


@dataclass(frozen=True, slots=True)
class Decided:
    """The panel's decision on a finding; `valid` is None without a majority, `classification` where classes tie."""

    finding: Merged
    valid: bool | None
    classification: str | None


def merge(findings: Iterable[Row], *, numbered: bool) -> list[Merged]:
    """Merge the findings by different judges that are one finding of the audit."""
    merged: list[Merged] = []
    for row in sorted(findings, key=lambda each: (each["judge"], each["finding_id"])):
        for known in merged:
            others = known.by_judge.values()
            if row["judge"] not in known.by_judge and any(_same(row, other, numbered=numbered) for other in others):
                known.by_judge[row["judge"]] = row
                break
        else:
            merged.append(Merged({row["judge"]: row}))
    return merged


def decide(finding: Merged) -> Decided:
    """Classify by strict majority of the judges that saw it: valid against invalid first, then within that side."""
    classes = [*finding.classes.values()]
    valid = _most([name in VALID for name in classes])
    within = [name for name in classes if valid is not None and (name in VALID) == valid]
    return Decided(finding, valid, _most(within))


def counts(decided: Sequence[Decided]) -> dict[str, Any]:
    """Count findings for a panel's row; those without a majority are counted as undecided, in no denominator."""
    valid = sum(each.valid is True for each in decided)
    invalid = sum(each.valid is False for each in decided)
    return {
        "total_findings": valid + invalid,
        "valid_findings": valid,
        "invalid_findings": invalid,
        "undecided_findings": sum(each.valid is None for each in decided),
        **{count_column(name): sum(each.classification == name for each in decided) for name in CLASSIFICATIONS},
        "finding_precision": valid / (valid + invalid) if valid + invalid else None,
    }


def rows(base: Row, decided: Sequence[Decided]) -> list[dict[str, Any]]:
    """Make a panel's rows of `solidity_audit_findings`: the findings that have a class, numbered as merged."""
    return [
        {
            **base,
            "finding_id": number,
            "classification": each.classification,
            "matches_target": each.classification == TARGET,
            "is_valid_concern": each.classification not in INVALID,
            **{name: _first(each.finding, name) for name in _CLAIMED},
            "reason": None,
        }
        for number, each in enumerate(decided, start=1)
        if each.classification is not None
    ]


_CLAIMED = ("vulnerability_type_claimed", "severity_claimed", "location_claimed")


def _first(finding: Merged, name: str) -> Any:
    return next((row[name] for _, row in sorted(finding.by_judge.items()) if row[name] is not None), None)


def _same(one: Row, other: Row, *, numbered: bool) -> bool:
    if numbered:
        return bool(one["finding_id"] == other["finding_id"])
    if one["classification"] == other["classification"] == TARGET:
        return True
    types = [normalised(row["vulnerability_type_claimed"] or "") for row in (one, other)]
    return types[0] == types[1] and _same_place(one["location_claimed"] or "", other["location_claimed"] or "")


def _same_place(one: str, other: str) -> bool:
    """Tell whether two places share a function or a line, or are written alike."""
    shared = words_in(one) & words_in(other)
    return bool(shared or lines_in(one) & lines_in(other)) or one.strip() == other.strip()


def _most(words: Sequence[Any]) -> Any:
    return next((value for value in dict.fromkeys(words) if 2 * words.count(value) > len(words)), None)
