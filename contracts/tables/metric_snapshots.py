"""The table `metric_snapshots`: metric values with their uncertainty."""

from datetime import datetime

from pydantic import Field

from contracts.changes import Added
from contracts.contract import Contract, RowModel
from contracts.rule import Dimension, Kind, Rule, hash_rule, not_negative


class MetricRow(RowModel):
    """One metric value of one snapshot."""

    snapshot_id: str = Field(description="The snapshot.")
    row_key: str = Field(description="SHA-256 over model, judge, slice, slice value and metric.")
    suite: str = Field(description="The suite.")
    model: str = Field(description="The subject model.")
    judge: str | None = Field(description="The judge or panel; null where none is involved.")
    slice: str = Field(description="What the samples are sliced by; `all` where they are not.")
    slice_value: str = Field(description="Which part of the slice; empty for `all`.")
    metric: str = Field(description="The metric's name.")
    tier: int | None = Field(description="The metric's tier, where its suite has tiers.")
    value: float | None = Field(description="The value; null where it is undefined.")
    n: int = Field(description="The denominator.")
    units: int | None = Field(description="Distinct clusters of samples behind it; null in older rows.")
    n_eff: float | None = Field(description="How many independent rows would tell as much; null for counts.")
    se: float | None = Field(description="The standard error.")
    ci_low: float | None = Field(description="Lower end of the 95 % interval.")
    ci_high: float | None = Field(description="Upper end of the 95 % interval.")
    reliable: bool = Field(description="Whether every part of it rests on at least 30 units.")
    run_id: str | None = Field(description="The run that was measured; null in older rows: `snapshots` has it.")
    measured_at: datetime | None = Field(description="When the snapshot was made; null in older rows.")


METRIC_SNAPSHOTS = Contract(
    "metric_snapshots",
    MetricRow,
    ("snapshot_id", "row_key"),
    "Metric values, versioned over time: one row per value of a snapshot.",
    (
        *map(hash_rule, ("snapshot_id", "row_key")),
        *map(not_negative, ("n", "se")),
        Rule("interval_ordered", "ci_low", Kind.NOT_ABOVE, {"other": "ci_high"}, dimension=Dimension.CONSISTENCY),
    ),
    changes=(Added(("units", "n_eff")), Added(("run_id", "measured_at"))),
)
