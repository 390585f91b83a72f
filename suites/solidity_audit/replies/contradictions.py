"""Where a judgement contradicts itself, in words for the judge.

The cases of `refusing` refuse any judgement. Those of `further` refuse one that was asked for, which its judge can put
right; a recorded one lands with them, flagged, for its judge cannot be asked again.
"""

from collections import Counter
from collections.abc import Iterator

from suites.solidity_audit.replies.judgement import Finding, Judgement, TargetAssessment
from suites.solidity_audit.taxonomy import PARTIAL, SCORES, TARGET, VALID

MOST_TOLD = 20
"""How many further contradictions are listed of one judgement."""

_VALID = f"{', '.join(VALID[:-1])} and {VALID[-1]}"


def contradictions(judgement: Judgement) -> list[str]:
    """List all contradictions of a judgement."""
    return [*refusing(judgement), *further(judgement)]


def refusing(judgement: Judgement) -> list[str]:
    """List the contradictions by which the contract of the results refuses a judgement wherever it comes from."""
    contradictions = []
    target = judgement.target_assessment
    if repeated := repeated_ids(judgement):
        contradictions.append(f"several findings have the finding_id {repeated[0]}; give each one of its own")
    if unknown := unknown_ids(judgement):
        contradictions.append(f"target_assessment.finding_id is {unknown[0]}, but no finding has that id")
    if target is not None and not target.found and judgement.has_target:
        contradictions.append(f"a finding is classified {TARGET}, but target_assessment.found is false")
    for name, value in shares(judgement).items():
        if value is not None and not 0 <= value <= 1:
            contradictions.append(f"{name} is {value}, which is not between 0 and 1")
    return contradictions


def further(judgement: Judgement) -> list[str]:
    """List contradictions between the finding named as target, the findings' classes and what is said of each."""
    target = judgement.target_assessment
    contradictions = [] if target is None else list(_of_target(target, judgement))
    return [
        *contradictions,
        *(contradiction for finding in judgement.findings for contradiction in _of_finding(finding)),
    ][:MOST_TOLD]


def _of_target(target: TargetAssessment, judgement: Judgement) -> Iterator[str]:
    number, field = target.finding_id, "target_assessment.finding_id"
    classes = {finding.finding_id: finding.classification for finding in judgement.findings}
    if not target.found:
        if number is not None:
            yield f"target_assessment.found is false, but {field} is {number}; it is null where the target is not found"
    elif number is None:
        yield f"target_assessment.found is true, but {field} is null; it names the finding that is the target"
    elif number in classes and classes[number] not in ((TARGET,) if judgement.has_target else (TARGET, PARTIAL)):
        yield (
            f"target_assessment.found is true and {field} is {number}, but finding {number} is classified "
            f"{classes[number]}; the target is found by a {TARGET}, or where there is none by a {PARTIAL}"
        )


def _of_finding(finding: Finding) -> Iterator[str]:
    kind, about = finding.classification, f"finding {finding.finding_id} is classified {finding.classification}"
    if finding.matches_target is True and kind not in (TARGET, PARTIAL):
        yield f"{about}, but its matches_target is true"
    if finding.matches_target is False and kind == TARGET:
        yield f"{about}, but its matches_target is false"
    if finding.is_valid_concern is not None and finding.is_valid_concern != (kind in VALID):
        stated = str(finding.is_valid_concern).lower()
        yield f"{about}, but its is_valid_concern is {stated}; it is true for {_VALID} alone"


def repeated_ids(judgement: Judgement) -> list[int]:
    """List the ids that more than one finding has."""
    return [number for number, times in Counter(f.finding_id for f in judgement.findings).items() if times > 1]


def unknown_ids(judgement: Judgement) -> list[int]:
    """List the id that is said to be the target's, where no finding has it."""
    target = judgement.target_assessment
    if target is None or not target.found or target.finding_id is None:
        return []
    return [] if target.finding_id in {f.finding_id for f in judgement.findings} else [target.finding_id]


def shares(judgement: Judgement) -> dict[str, float | None]:
    """Collect the numbers that must lie between 0 and 1, by their names in the judgement."""
    target, verdict = judgement.target_assessment, judgement.overall_verdict
    scores = {name: getattr(target, name, None) for name in SCORES.values()}
    return {name: getattr(score, "score", None) for name, score in scores.items()} | {
        "confidence_expressed": None if verdict is None else verdict.confidence_expressed
    }
