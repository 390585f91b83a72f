"""The tables of metrics, judges and gates: `metric_snapshots`, `snapshots`, `judge_…`, `gate_decisions`."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from evalake.contracts.contract import Added, Contract, Renamed, RowModel
from evalake.contracts.rule import Kind, Rule, at_least_one, consistent, hash_rule, is_share, not_blank, not_negative


class MetricRow(RowModel):
    """One metric value of one snapshot."""

    snapshot_id: str = Field(description="The snapshot.")
    row_key: str = Field(description="SHA-256 over model, judge, slice, slice value and metric.")
    suite: str = Field(description="The suite.")
    model: str = Field(description="The subject model.")
    judge: str | None = Field(description="The judge or panel; null where none is involved.")
    slice: str = Field(description="The column by which samples are sliced; `all` for all samples.")
    slice_value: str = Field(description="The value of the slice; empty for `all`.")
    metric: str = Field(description="The metric's name.")
    tier: int | None = Field(description="The metric's tier, where its suite has tiers.")
    value: float | None = Field(description="The value; null where it is undefined.")
    n: int = Field(description="The denominator.")
    units: int | None = Field(description="Distinct clusters of samples behind it; null in older rows.")
    n_eff: float | None = Field(
        description="The number of independent rows with the same information; null for counts."
    )
    se: float | None = Field(description="The standard error.")
    ci_low: float | None = Field(description="Lower end of the 95 % interval.")
    ci_high: float | None = Field(description="Upper end of the 95 % interval.")
    reliable: bool = Field(description="Whether each part has at least 30 units, and no few large amounts make it up.")
    run_id: str | None = Field(description="The run that was measured; null in older rows: `snapshots` has it.")
    measured_at: datetime | None = Field(description="When the snapshot was made; null in older rows.")
    bound_low: float | None = Field(
        description="Of a headline metric over all samples, the lowest value that what is missing leaves; null where "
        "nothing is missing, and in older rows."
    )
    bound_high: float | None = Field(description="The highest one.")


METRIC_SNAPSHOTS = Contract(
    "metric_snapshots",
    MetricRow,
    ("snapshot_id", "row_key"),
    "Metric values, versioned over time: one row per value of a snapshot.",
    (
        *map(hash_rule, ("snapshot_id", "row_key")),
        *map(not_negative, ("n", "se")),
        consistent("interval_ordered", "ci_low", Kind.NOT_ABOVE, "ci_high"),
    ),
    changes=(Added(("units", "n_eff")), Added(("run_id", "measured_at")), Added(("bound_low", "bound_high"))),
)


class SnapshotRow(RowModel):
    """One metric snapshot."""

    snapshot_id: str = Field(description="SHA-256 over the inputs: run, pinned versions, definitions, options, seed.")
    run_id: str = Field(description="The run that was measured.")
    suite: str = Field(description="The suite.")
    pinned_versions: str = Field(description="Table name to the version read, as JSON; null: no such table yet.")
    definition_hash: str = Field(description="SHA-256 over the metric definitions.")
    scorer_version: str = Field(description="The version of the rules that turned replies into rows.")
    code_version: str = Field(description="The version of evalake.")
    seed: int = Field(description="The seed of every bootstrap.")
    options: str = Field(description="The suite's options, as JSON.")
    warnings: list[str] = Field(description="Warnings for readers of the numbers.")
    created_at: datetime = Field(description="When it was first made.")


SNAPSHOTS = Contract(
    "snapshots",
    SnapshotRow,
    ("snapshot_id",),
    "Snapshots: the run, the pinned version of every input table, the metric definitions, the seed.",
    (hash_rule("snapshot_id"), hash_rule("definition_hash")),
)


DAY_IS_DATE = Rule("day_is_date", "day", Kind.MATCHES, {"pattern": "[0-9]{4}-[0-9]{2}-[0-9]{2}"})


class JudgeVersionRow(RowModel):
    """One version of a judge, with the answers that later ones are held against."""

    suite: str = Field(description="The suite whose frozen items were judged.")
    judge: str = Field(description="The judge model.")
    version: int = Field(description="Its number, from 1: a judge's answers moved between one and the next.")
    canary_hash: str = Field(
        description="SHA-256 over the first requests about all frozen items: under other ones, the version goes on "
        "with answers of its own to compare with."
    )
    since: datetime = Field(
        description="From when replies count as of this version: the last canary that found the judge as before. What "
        "was answered before the first version counts as of the first."
    )
    day: str = Field(description="The day of the version's first answers, like 2026-11-22.")
    first_replicate: int = Field(description="The replicate of the version's first answers in the ledger.")
    replicates: int = Field(description="The number of first answers to each item; their replicates follow the first.")
    items: int = Field(description="The number of frozen items.")
    p_value: float | None = Field(
        description="The p-value of the test that found the judge moved; null without a test."
    )


JUDGE_VERSIONS = Contract(
    "judge_versions",
    JudgeVersionRow,
    ("suite", "judge", "version", "canary_hash"),
    "Versions of judges: within one, a judge's answers to frozen items stay within their test-retest noise.",
    (
        *map(not_blank, ("suite", "judge")),
        hash_rule("canary_hash"),
        DAY_IS_DATE,
        at_least_one("version"),
        *map(not_negative, ("first_replicate", "replicates", "items")),
        is_share("p_value"),
    ),
    changes=(Renamed("judge_epochs", {"epoch": "version"}),),
)


class JudgeCanaryRow(RowModel):
    """The result of one day's canary of one judge."""

    suite: str = Field(description="The suite whose frozen items were judged.")
    judge: str = Field(description="The judge model.")
    day: str = Field(description="The day, like 2026-11-22.")
    canary_hash: str = Field(description="SHA-256 over the first requests about all frozen items.")
    version: int = Field(description="The judge's version on the day; the new one where it moved.")
    moved: bool = Field(description="Whether its answers moved beyond their test-retest noise.")
    items: int = Field(description="The number of judged items.")
    answers: int = Field(description="The answers to each item: one, or more where the first looked moved.")
    distance: float | None = Field(
        description="Mean distance of the day's answers from the version's, 0 to 1; null for the version's first."
    )
    noise: float | None = Field(description="Mean distance among the version's own answers to one item, 0 to 1.")
    shift: float | None = Field(
        description="The distance of the day's mean answer from the version's, 0 to 1; null as above."
    )
    p_value: float | None = Field(description="The p-value of the change; null as above.")
    run_id: str = Field(description="The run that asked, as in the ledger.")
    flow_run_id: str | None = Field(description="The Prefect flow run.")
    judged_at: datetime = Field(description="When.")


JUDGE_CANARIES = Contract(
    "judge_canaries",
    JudgeCanaryRow,
    ("suite", "judge", "day"),
    "Canaries: the same frozen items judged again, day after day, and whether the judge's answers moved.",
    (
        *map(not_blank, ("suite", "judge")),
        hash_rule("canary_hash"),
        DAY_IS_DATE,
        at_least_one("version"),
        *map(not_negative, ("items", "answers")),
        *map(is_share, ("distance", "noise", "shift", "p_value")),
    ),
    changes=(Renamed(columns={"epoch": "version"}),),
)


class GateDecisionRow(RowModel):
    """What one rule of `evalake gate` decided of one model, as one judge saw it."""

    decision_id: str = Field(description="SHA-256 over snapshots, rule, subject and numbers: the same lands once.")
    run_id: str = Field(description="The run that was held.")
    snapshot_id: str = Field(description="Its snapshot.")
    suite: str = Field(description="The suite.")
    baseline: str | None = Field(description="The baseline as it was named; null without one.")
    rule: str = Field(description="The rule.")
    model: str = Field(description="The model.")
    judge: str | None = Field(description="The judge; null where rules judge.")
    verdict: Literal["PASS", "FAIL", "UNDECIDED"] = Field(description="The decision.")
    value: float | None = Field(description="The value; null where it is unknown.")
    difference: float | None = Field(description="Value minus baseline; null where the rule is about no change.")
    ci_low: float | None = Field(description="The lower end of the interval of the difference, or else of the value.")
    ci_high: float | None = Field(description="The upper end.")
    units: int | None = Field(description="The number of units; null where it is unknown.")
    reason: str | None = Field(description="The reason, where numbers do not say it.")
    limit_low: float | None = Field(description="The lower of the limits that decided; null for rules about changes.")
    limit_high: float | None = Field(description="The upper one.")
    missing: float | None = Field(description="The share of missing items; null for decisions of before it was kept.")
    reliable: bool | None = Field(description="Whether the value is reliable; null for decisions of before.")
    decided_at: datetime = Field(description="When it was decided first.")


GATE_DECISIONS = Contract(
    "gate_decisions",
    GateDecisionRow,
    ("decision_id",),
    "Decisions of `evalake gate`, one row for each rule, model and judge.",
    (
        *map(hash_rule, ("decision_id", "snapshot_id")),
        *map(not_blank, ("run_id", "suite", "rule", "model")),
        not_negative("units"),
    ),
    changes=(Added(("limit_low", "limit_high", "missing", "reliable")),),
)
