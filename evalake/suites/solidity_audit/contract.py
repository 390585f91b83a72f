"""The tables of solidity_audit: one judged audit is a row of `…_results`, one judged finding a row of `…_findings`."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import polars as pl
from pydantic import Field

from evalake.contracts.contract import ENDPOINTS_OF_RESULTS, Added, Contract, RowModel
from evalake.contracts.rule import Dimension, Kind, Rule, consistent, hash_rule, is_share, not_blank, not_negative
from evalake.models.request import EmptyKind
from evalake.sdk.results import LANDED_BY_RUN, JudgedRow, replaced_when, result_key
from evalake.sdk.suite import EMPTY, REFUSALS, Outcomes
from evalake.suites.solidity_audit import truth

PROVISIONAL_ERRORS = ("timeout", "content_policy", "context_length")
"""Kinds of failed judge calls that stand as a judge error until a reply comes; any other is a missing answer."""


class SolidityAuditResult(JudgedRow):
    """One audit as one judge, or one panel of judges, saw it."""

    stands_after: ClassVar[Mapping[str, str]] = {
        **JudgedRow.stands_after,
        "cluster": "sample_hash",
        "judge_cost_usd": "cost_usd",
    }

    cluster: str = Field(description="What is resampled together: a pair of twins, or all rows of one sample.")
    is_vulnerable: bool = Field(description="Ground truth: whether the contract has a vulnerability.")
    vulnerability_type: str | None = Field(
        description="Ground truth: its type; null where there is none, or nobody said."
    )
    severity: str | None = Field(description="Ground truth: how severe it is; null where nobody said.")
    difficulty_tier: int | None = Field(description="Ground truth: 1 textbook to 4 economic; null where unknown.")
    base: str | None = Field(description="The sample that this one was made of, or its own name; null where unknown.")
    transformation: str | None = Field(description="How it was made of its base; null where nobody said.")
    code_act: str | None = Field(description="What the first statement at the root does; null where unknown.")
    recognised: bool | None = Field(description="The model says that it knows the contract; null unless asked for it.")
    contaminated: bool | None = Field(
        description="It does, and names the known incident; null unless asked for it, or where no incident is known."
    )
    subject_error: str | None = Field(description="Why the model gave no audit: timeout, content_policy, …; else null.")
    empty_kind: EmptyKind | None = Field(description="What a reply without text consisted of; null where it has text.")
    judge_error: str | None = Field(description="Why there is no judgement; null where there is one.")
    repaired: bool | None = Field(description="The judgement is the judge's second attempt; null for panels, imports.")
    mended: str | None = Field(
        description="What was mended in the form of audit or judgement to read it, in words; null where nothing was."
    )
    panel_judges: int | None = Field(description="How many judges the panel has; null for a single judge.")
    panel_answers: int | None = Field(description="How many of them gave a judgement; null for a single judge.")
    panel_undecided: bool | None = Field(description="Tied, or fewer than two answers; null for a single judge.")
    said_vulnerable: bool | None = Field(description="The audit's verdict; null where it gave none.")
    confidence: float | None = Field(description="The confidence that the audit stated, 0 to 1; null where none.")
    detection_correct: bool | None = Field(description="Verdict equals ground truth; no verdict is incorrect.")
    calibration_error: float | None = Field(description="Distance of confidence from detection_correct as 0 or 1.")
    target_found: bool | None = Field(description="The audit names the known vulnerability; null where not judged.")
    lucky_guess: bool | None = Field(description="Rightly called vulnerable without finding the target.")
    type_match: truth.TypeMatch | None = Field(description="How the claimed type compares with the true one.")
    root_cause_match: bool | None = Field(description="The judge's word on the root cause; null where it says none.")
    location_match: bool | None = Field(description="The judge's word on the place; null where it says none.")
    rcir: float | None = Field(description="Root cause identification, 0 to 1; null unless the target was found.")
    ava: float | None = Field(description="Attack vector validity, 0 to 1; null unless the target was found.")
    fsv: float | None = Field(description="Fix suggestion validity, 0 to 1; null unless the target was found.")
    type_match_reason: str | None = Field(description="The judge's reason for its type match; null where none.")
    rcir_reason: str | None = Field(description="The judge's reason for its root cause score; null where none.")
    ava_reason: str | None = Field(description="The judge's reason for its attack vector score; null where none.")
    fsv_reason: str | None = Field(description="The judge's reason for its fix score; null where none.")
    judge_notes: str | None = Field(description="What else the judge noted; null where it noted nothing.")
    target_match_id: int | None = Field(description="The first finding classified TARGET_MATCH; null without one.")
    unknown_finding_ids: list[int] = Field(description="The finding said to be the target, where no finding is it.")
    repeated_finding_ids: list[int] = Field(description="Ids that two findings have.")
    contradictions: str | None = Field(
        description="What else in the judgement does not go together, in words; null where all does, and for panels."
    )
    total_findings: int | None = Field(
        description="Findings of the audit; null where there is no judgement, or a panel."
    )
    valid_findings: int | None = Field(description="TARGET_MATCH, PARTIAL_MATCH and BONUS_VALID ones.")
    invalid_findings: int | None = Field(description="All others.")
    target_match_findings: int | None = Field(description="Findings that are the known vulnerability.")
    partial_match_findings: int | None = Field(description="Findings that are part of it.")
    bonus_valid_findings: int | None = Field(description="Findings of other real vulnerabilities.")
    hallucinated_findings: int | None = Field(description="Findings about what is not there.")
    mischaracterized_findings: int | None = Field(description="Findings that take harmless code for harmful.")
    design_choice_findings: int | None = Field(description="Findings about what is meant to be so.")
    out_of_scope_findings: int | None = Field(description="Findings outside of what was asked.")
    security_theater_findings: int | None = Field(description="Findings without a way to be exploited.")
    informational_findings: int | None = Field(description="Findings on style and documentation.")
    finding_precision: float | None = Field(description="Valid findings of all; null without findings.")
    target_credit: float | None = Field(description="1 for a TARGET_MATCH, 0.5 for only a PARTIAL_MATCH, else 0.")
    undecided_findings: int | None = Field(description="Merged findings that no majority of a panel's judges classes.")
    location_function_hit: bool | None = Field(description="A found target's location names a vulnerable function.")
    location_line_hit: bool | None = Field(description="A claimed line lies within 3 lines of a true one.")
    location_line_iou: float | None = Field(description="Intersection over union of claimed and true lines.")
    latency_ms: float | None = Field(description="Milliseconds of the subject call.")
    input_tokens: int | None = Field(description="Tokens of the subject call's prompt.")
    output_tokens: int | None = Field(description="Tokens of the audit, reasoning included.")
    cost_usd: float | None = Field(description="What the audit cost in US dollars; null where the price is unknown.")
    audit_hash: str | None = Field(description="SHA-256 over the audit's text; null for a panel.")
    judgement_hash: str | None = Field(description="SHA-256 over what judged it; null until a reply comes.")


KEY = result_key(SolidityAuditResult)
JUDGED_KEY = (*KEY, "reply_revision")
"""By which findings belong to a result row: those of a judgement that was withdrawn belong to none."""

REASONS = ("type_match_reason", "rcir_reason", "ava_reason", "fsv_reason", "judge_notes")
"""A judgement's reasons beside those of its findings; a panel has none of its own."""

_WORDS = (
    *("dataset", "sample_id", "cluster", "model", "judge", "prompt_type", "judge_error", "subject_error"),
    *("vulnerability_type", "severity", "endpoint", "judge_endpoint", "base", "transformation", "code_act"),
)
_SHARES = (
    *("confidence", "calibration_error", "rcir", "ava", "fsv"),
    *("finding_precision", "target_credit", "location_line_iou"),
)
COUNTS = ("total_findings", "valid_findings", "invalid_findings", *map(truth.count_column, truth.CLASSIFICATIONS))
_SPENT = ("latency_ms", "input_tokens", "output_tokens", "cost_usd", "judge_cost_usd")

RESULTS = Contract(
    "solidity_audit_results",
    SolidityAuditResult,
    KEY,
    "One audit of a smart contract as one judge, or one panel of judges, saw it.",
    (
        *map(hash_rule, ("prompt_hash", "judge_hash", "sample_hash", "audit_hash", "judgement_hash")),
        *map(not_blank, _WORDS),
        *map(not_negative, ("replicate", "reply_revision", "difficulty_tier", "undecided_findings", *COUNTS, *_SPENT)),
        *map(is_share, _SHARES),
        # A judgement that contradicts itself is refused by one of these, which says how.
        consistent("target_match_means_found", "target_match_id", Kind.ABSENT_WHEN, "target_found", False),
        Rule("found_finding_exists", "unknown_finding_ids", Kind.EMPTY, dimension=Dimension.CONSISTENCY),
        Rule("finding_ids_differ", "repeated_finding_ids", Kind.EMPTY, dimension=Dimension.CONSISTENCY),
        consistent("asked_judgement_agrees_with_itself", "contradictions", Kind.ABSENT_WHEN, "origin", "call"),
        consistent("valid_within_total", "valid_findings", Kind.NOT_ABOVE, "total_findings"),
        consistent("answers_within_panel", "panel_answers", Kind.NOT_ABOVE, "panel_judges"),
    ),
    partition_by=("model",),
    # An older row of a panel has the key that it has once the failed call of a judge is answered.
    replaced_when=replaced_when(
        "old.judgement_hash IS NULL AND new.judgement_hash IS NOT NULL OR new.panel_answers > old.panel_answers"
    ),
    changes=(
        Added(("undecided_findings", "subject_error")),
        Added(("contradictions",)),
        Added(REASONS),
        LANDED_BY_RUN,
        ENDPOINTS_OF_RESULTS,
        Added(("mended",)),
        Added(("base", "transformation", "code_act", "recognised", "contaminated")),
        Added(truth.MATCHES),
        Added(("empty_kind",)),
    ),
    suite="solidity_audit",
)


class SolidityAuditFinding(RowModel):
    """One finding of an audit, as one judge saw it."""

    landed_by_run: str = Field(description="The run that landed the row first.")
    origin: Literal["call", "import"] = Field(description="Asked by evalake, or imported from recorded results.")
    sample_hash: str = Field(description="The sample's content hash.")
    model: str = Field(description="The model that audited.")
    judge: str = Field(description="The judge.")
    replicate: int = Field(description="Which repeat of the same requests this is, from 0.")
    prompt_hash: str = Field(description="The prompt hash of the subject call.")
    judge_hash: str = Field(description="The prompt hash of the judge call.")
    endpoint: str = Field(description="The endpoint that answered the subject call.")
    judge_endpoint: str = Field(description="The endpoint that answered the judge call.")
    reply_revision: int = Field(description="Of the replies, as in solidity_audit_results.")
    scorer_version: str = Field(description="The version of the rules that turned the replies into this row.")
    finding_id: int = Field(description="The finding's number within its judgement.")
    classification: truth.Classification = Field(description="What the judge took it for.")
    classification_stated: str | None = Field(
        description="The judge's own word, where a recorded judgement has another than the rubric's; else null."
    )
    matches_target: bool | None = Field(description="The judge's word on whether it is the known vulnerability.")
    is_valid_concern: bool | None = Field(description="The judge's word on whether it is a real concern.")
    vulnerability_type_claimed: str | None = Field(description="The type that the audit gave it.")
    severity_claimed: str | None = Field(description="The severity that the audit gave it.")
    location_claimed: str | None = Field(description="Where the audit placed it.")
    reason: str | None = Field(description="Why the judge classified it so.")


FINDINGS = Contract(
    "solidity_audit_findings",
    SolidityAuditFinding,
    (*JUDGED_KEY, "finding_id"),
    "One finding of an audit, as one judge classified it.",
    (
        *map(hash_rule, ("prompt_hash", "judge_hash", "sample_hash")),
        *map(not_blank, ("model", "judge", "endpoint", "judge_endpoint")),
        *map(not_negative, ("replicate", "reply_revision")),
    ),
    partition_by=("model",),
    changes=(LANDED_BY_RUN, ENDPOINTS_OF_RESULTS, Added(("classification_stated",))),
)

CONTRACTS = (RESULTS, FINDINGS)

_subject_error = pl.col("subject_error")
_replied = pl.col("judgement_hash").is_not_null()  # by the judge, or by the model where there was nothing to judge
_judge_error = pl.col("judge_error")
_is_audit = pl.col("prompt_type") != truth.KNOWLEDGE
_of_panel = pl.col("panel_undecided").is_not_null()

OUTCOMES = Outcomes(
    missing=pl.when(~_replied & ~_subject_error.is_in(REFUSALS))
    .then(_subject_error)
    .when(_judge_error.is_in(PROVISIONAL_ERRORS))
    .then(_judge_error)
    .when(_judge_error.is_not_null())
    .then(pl.lit("judge_error"))
    .when(pl.col("panel_undecided") | (_of_panel & _is_audit & pl.col("detection_correct").is_null()))
    .then(pl.lit("undecided")),
    without_verdict=pl.when(_subject_error == "timeout")
    .then(pl.lit(EMPTY))
    .when(_subject_error.is_not_null())
    .then(_subject_error)
    .when(pl.col("said_vulnerable").is_null() & (_is_audit | pl.col("recognised").is_null()))
    .then(pl.lit("no_verdict")),
)

VERDICT_WORD = (
    pl.when("said_vulnerable").then(pl.lit("vulnerable")).when(~pl.col("said_vulnerable")).then(pl.lit("safe"))
)
"""The audit's verdict; null where it gave none."""
