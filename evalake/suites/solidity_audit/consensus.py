"""What a panel says of an audit, from its judges' answers: by majority, or by Dawid and Skene, as declared.

A majority looks at one audit. Dawid and Skene weigh judges by how much they err, which only all audits of the panel in
a run tell (`evalake.metrics.agreement`): for a target found, a verdict, and the class of a finding.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evalake.contracts.contract import Row
from evalake.metrics.agreement import Consensus, dawid_skene
from evalake.suites.solidity_audit import truth
from evalake.suites.solidity_audit.replies import lines_in, words_in

# Findings of several judges, merged: which of them are one finding of the audit, and what most judges take it for.


NUMBERED = truth.STRUCTURED
"""The prompt types whose audits number their findings; judges keep the numbers."""


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
    valid = _most([name in truth.VALID for name in classes])
    within = [name for name in classes if valid is not None and (name in truth.VALID) == valid]
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
        **{
            truth.count_column(name): sum(each.classification == name for each in decided)
            for name in truth.CLASSIFICATIONS
        },
        "finding_precision": valid / (valid + invalid) if valid + invalid else None,
    }


def rows(base: Row, decided: Sequence[Decided]) -> list[dict[str, Any]]:
    """Make a panel's rows of `solidity_audit_findings`: the findings that have a class, numbered as merged."""
    return [
        {
            **base,
            "finding_id": number,
            "classification": each.classification,
            "matches_target": each.classification == truth.TARGET,
            "is_valid_concern": each.classification not in truth.INVALID,
            **{name: _first(each.finding, name) for name in _CLAIMED},
            "classification_stated": None,
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
    if one["classification"] == other["classification"] == truth.TARGET:
        return True
    types = [truth.normalised(row["vulnerability_type_claimed"] or "") for row in (one, other)]
    return types[0] == types[1] and _same_place(one["location_claimed"] or "", other["location_claimed"] or "")


def _same_place(one: str, other: str) -> bool:
    """Tell whether two places share a function or a line, or are written alike."""
    shared = words_in(one) & words_in(other)
    return bool(shared or lines_in(one) & lines_in(other)) or one.strip() == other.strip()


def _most(words: Sequence[Any]) -> Any:
    return next((value for value in dict.fromkeys(words) if 2 * words.count(value) > len(words)), None)


FEWEST_ANSWERS = 2
HALF = 0.5 + 1e-6
"""An answer with a probability above this is decided; the margin leaves ties open in spite of rounding."""

Words = Mapping[str, Any]  # answers, by judge
Chances = Mapping[Any, float]  # probabilities, by answer
PanelAnswer = tuple[Any, bool]  # what the panel says, and whether it decided; None is an answer, too


@dataclass(frozen=True, slots=True)
class Audit:
    """One audit as the judges of a panel saw it: their rows, and the findings of those that answered, merged."""

    members: Sequence[Row]
    findings: Sequence[Merged]

    @property
    def answers(self) -> list[Row]:
        """The judgements; judge errors are none."""
        return [row for row in self.members if row["judge_error"] is None]

    def words(self, decision: str) -> dict[str, Any]:
        """Map each judge that answered to its answer on a decision, a column of its row."""
        return {row["judge"]: row[decision] for row in self.answers}


@dataclass(frozen=True, slots=True)
class Word:
    """What a panel says of an audit."""

    target_found: PanelAnswer
    verdict: PanelAnswer
    findings: Sequence[Decided]


def by_majority(audits: Sequence[Audit]) -> list[Word]:
    """Take for each audit the answers of most judges."""
    return [
        Word(
            majority([*audit.words("target_found").values()]),
            majority([*audit.words("said_vulnerable").values()]),
            [decide(finding) for finding in audit.findings],
        )
        for audit in audits
    ]


def by_strict_majority(audits: Sequence[Audit]) -> list[Word]:
    """Take a target as found where most judges found it in a vulnerable function, if one is known."""
    words = by_majority(audits)
    strict = [majority([_found_strictly(row) for row in audit.answers]) for audit in audits]
    return [replace(word, target_found=found) for word, found in zip(words, strict, strict=True)]


def _found_strictly(row: Row) -> bool | None:
    """Judge the target by a row: it is found, and the place is right by the judge's word, or names the function."""
    if not row["target_found"]:
        return None if row["target_found"] is None else False
    return row.get("location_match") is True or row["location_function_hit"] is not False


def by_dawid_skene(audits: Sequence[Audit]) -> list[Word]:
    """Take for each audit the answers likelier than not, with judges' error rates estimated over all these audits."""
    targets, verdicts, classes = on_targets(audits), on_verdicts(audits), on_findings(audits)
    words = []
    for audit, target_found, verdict, of_findings in zip(audits, targets, verdicts, classes, strict=True):
        findings = [_decided(*each) for each in zip(audit.findings, of_findings, strict=True)]
        few = len(audit.answers) < FEWEST_ANSWERS
        on_target, on_verdict = ((None, False) if few else _likeliest(chances) for chances in (target_found, verdict))
        words.append(Word(on_target, on_verdict, findings))
    return words


AGGREGATIONS: Mapping[str, Callable[[Sequence[Audit]], list[Word]]] = {
    truth.MAJORITY: by_majority,
    truth.STRICT: by_strict_majority,
    truth.DAWID_SKENE: by_dawid_skene,
}
"""The functions that make a panel's answers of its judges', by their name in the suite's option `aggregation`."""


def on_targets(audits: Sequence[Audit]) -> list[Chances]:
    """Compute the probability of each answer on "target found"; safe contracts, without a target, are kept apart."""
    chances: list[Chances] = [{} for _ in audits]
    for is_vulnerable in (True, False):
        places = [place for place, audit in enumerate(audits) if audit.members[0]["is_vulnerable"] is is_vulnerable]
        chances_there = chances_of([audits[place].words("target_found") for place in places])
        for place, each in zip(places, chances_there, strict=True):
            chances[place] = each
    return chances


def on_verdicts(audits: Sequence[Audit]) -> list[Chances]:
    """Compute the probability of each answer on the verdict that the audit gives."""
    return chances_of([audit.words("said_vulnerable") for audit in audits])


def on_findings(audits: Sequence[Audit]) -> list[list[Chances]]:
    """Compute the probability of each class of every merged finding, audit by audit."""
    each = iter(chances_of([finding.classes for audit in audits for finding in audit.findings]))
    return [[next(each) for _ in audit.findings] for audit in audits]


def chances_of(units: Sequence[Words]) -> list[Chances]:
    """Compute the probability of each answer for every unit; an empty mapping where no judge answered."""
    spoken = [place for place, words in enumerate(units) if words]
    if not spoken:
        return [{} for _ in units]
    known, consensus = consensus_of([units[place] for place in spoken])
    posterior = dict(zip(spoken, consensus.posterior.tolist(), strict=True))
    return [
        dict(zip(known, posterior[place], strict=True)) if place in posterior else {} for place in range(len(units))
    ]


def consensus_of(units: Sequence[Words]) -> tuple[Sequence[Any], Consensus]:
    """Estimate the consensus of units that have a word each; returns the words in the order of its classes, and it."""
    judges = {judge: place for place, judge in enumerate(sorted({judge for words in units for judge in words}))}
    known = {word: place for place, word in enumerate(sorted({w for words in units for w in words.values()}, key=str))}
    counts = np.zeros((len(units), len(judges), len(known)))
    for item, words in enumerate(units):
        for judge, word in words.items():
            counts[item, judges[judge], known[word]] = 1
    return list(known), dawid_skene(counts)


def has_converged(audits: Sequence[Audit]) -> bool:
    """Tell whether the consensus of targets found, of verdicts and of findings was reached."""
    targets: dict[bool, list[Words]] = {True: [], False: []}
    for audit in audits:
        targets[audit.members[0]["is_vulnerable"]].append(audit.words("target_found"))
    verdicts = [audit.words("said_vulnerable") for audit in audits]
    findings = [finding.classes for audit in audits for finding in audit.findings]
    decisions: tuple[Sequence[Words], ...] = (*targets.values(), verdicts, findings)
    answered = ([words for words in units if words] for units in decisions)
    return all(consensus_of(units)[1].converged for units in answered if units)


def is_valid(chances: Chances) -> float:
    """Compute the probability that a finding is of a valid class."""
    return sum(chance for name, chance in chances.items() if name in truth.VALID)


def _likeliest(chances: Chances) -> PanelAnswer:
    return next(((word, True) for word, chance in chances.items() if chance > HALF), (None, False))


def _decided(finding: Merged, chances: Chances) -> Decided:
    """Decide valid against invalid first, then the class within that side, as for a majority."""
    valid, _ = _likeliest({True: is_valid(chances), False: 1 - is_valid(chances)})
    within = {name: chance for name, chance in chances.items() if valid is not None and (name in truth.VALID) is valid}
    name, _ = _likeliest({name: chance / sum(within.values()) for name, chance in within.items()})
    return Decided(finding, valid, name)


def majority(answers: Sequence[Any]) -> PanelAnswer:
    """Find what more than half of at least two answers say, and whether it exists. None is an answer, too."""
    if len(answers) < FEWEST_ANSWERS:
        return None, False
    value, times = Counter(answers).most_common(1)[0]
    return (value, True) if 2 * times > len(answers) else (None, False)
