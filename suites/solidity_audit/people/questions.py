"""What people are asked about audits.

First, blind, without the ground truth: what the audit concludes. The questions that need the truth come after all of
these, with what is known of the contract: whether the audit found it, how well, and what each of its findings is, as
the audit's first judge counted them. Judges' decisions on the audit are never shown.
"""

from collections.abc import Callable, Mapping
from operator import itemgetter

import polars as pl

from suites.base import Labelling, Question, Seen, Stage
from suites.base.labelling import ANSWER, YES_NO
from suites.solidity_audit.contract import FINDINGS
from suites.solidity_audit.panels.rows import PREFIX
from suites.solidity_audit.people.compared import DECISIONS, NEAR, compare_with_people
from suites.solidity_audit.taxonomy import CLASSIFICATIONS
from suites.solidity_audit.truth import SUITE, GroundTruth
from suites.solidity_audit.viewing import VERDICT_WORD

DISAGREEMENT, CONFIDENT_AND_WRONG, UNCONFIRMED_BONUS = 4.0, 3.0, 2.0
"""What adds to an audit's weight (else 1) in the draw: judges disagree, it is confidently wrong, a bonus is open."""

CONFIDENT = 0.8

Shown = Mapping[str, Callable[[Seen], str | None]]


def _weighed(weight: float, condition: pl.Expr) -> pl.Expr:
    return weight * condition.any().fill_null(value=False).cast(pl.Float64)


WORTH = (
    1
    + DISAGREEMENT * (pl.col("target_found").drop_nulls().n_unique() > 1).cast(pl.Float64)
    + _weighed(CONFIDENT_AND_WRONG, (pl.col("confidence") > CONFIDENT) & ~pl.col("detection_correct"))
    + _weighed(UNCONFIRMED_BONUS, pl.col("bonus_valid_findings") > 0)
)


def _known(seen: Seen) -> str | None:
    truth = _truth(seen)
    return None if truth is None else in_words(truth)


def _truth(seen: Seen) -> GroundTruth | None:
    target = seen.sample.get("target")
    return GroundTruth.model_validate_json(target) if target else None


def _to_be_found(seen: Seen) -> bool:
    truth = _truth(seen)
    return truth is None or truth.is_vulnerable


def in_words(truth: GroundTruth) -> str:
    """Describe what is known of a contract."""
    if not truth.is_vulnerable:
        return "none is known: the contract counts as safe"
    places = [*truth.vulnerable_functions, *(f"line {number}" for number in truth.vulnerable_lines)]
    parts = {
        "type": truth.vulnerability_type,
        "severity": truth.severity,
        "where": ", ".join(places),
        "root cause": truth.root_cause,
        "attack": truth.attack_scenario,
        "fix": truth.fix,
    }
    return "\n".join(f"{name}: {part}" for name, part in parts.items() if part)


def _score(name: str, column: str, title: str, least: str, most: str) -> Question:
    scale = f"From 0 ({least}) to 1 ({most})."
    return Question(name, title, near=NEAR, help=scale, column=column, told={"judge": pl.col(column)})


BLIND: Shown = {"contract": lambda seen: seen.sample.get("input"), "audit": lambda seen: seen.reply}
BESIDE_TRUTH: Shown = {**BLIND, "known_vulnerability": _known}

_VERDICT = Question(
    "verdict", "What does the audit say that the contract is?", ("vulnerable", "safe"), told={"judge": VERDICT_WORD}
)

VERDICT = Stage(
    (_VERDICT,),
    BLIND,
    blind=True,
    words="What the audit concludes, whatever the truth is.",
)
TARGET = Stage(
    (
        # Agreement on it is in `people.agreement`, under names without a decision
        Question("target_found", "Does it name the known vulnerability?", YES_NO),
        _score("root_cause_score", "rcir", "How well does it identify the root cause?", "not at all", "exactly"),
        _score("attack_vector_score", "ava", "How valid is the attack that it describes?", "impossible", "it works"),
        _score("fix_score", "fsv", "Would the fix that it suggests work?", "not at all", "wholly"),
    ),
    BESIDE_TRUTH,
    where=_to_be_found,
    words="Whether the audit finds what is known, and how well.",
)
FINDING = Stage(
    (Question("classification", "What is this finding?", CLASSIFICATIONS),),
    BESIDE_TRUTH,
    each=itemgetter(FINDINGS.table),
    claims=("vulnerability_type_claimed", "severity_claimed", "location_claimed"),
    words="One finding.",
)

LABELLING = Labelling(
    SUITE,
    (VERDICT, TARGET, FINDING),
    unit=ANSWER,
    worth=WORTH,
    counted=pl.col("judge_error").is_null() & ~pl.col("judge").str.starts_with(PREFIX),
    compare=compare_with_people,
    decisions=DECISIONS,
)
