"""Small reports for tests: a guard's answers by model, and the metric values that follow from them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from evalake.reports.ranking import Comparison
from evalake.reports.report import Report
from evalake.sdk.figures import Answers, Bars, Figure, HeatMap, Quantity, Ranking, Scatter, Unit
from tests.cases import cases_beside

CASES = cases_beside(__file__, "samples.json")

SCORE = Quantity("score", "score")
DETECTION = Quantity("detection", "detection")
ACCEPTANCE = Quantity("acceptance", "acceptance")
COST = Quantity("cost", "cost", Unit.US_DOLLARS, higher_is_better=False)
LATENCY = Quantity("latency", "latency", Unit.MILLISECONDS, higher_is_better=False)

FIGURES: tuple[Figure, ...] = (
    Ranking("Ranking", SCORE, (DETECTION, ACCEPTANCE)),
    Scatter("Acceptance against detection", DETECTION, ACCEPTANCE, target_zone=True),
    Scatter("Cost against score", COST, SCORE, pareto=True),
    HeatMap("Detection by category", DETECTION, "category"),
    Bars("Latency bars", (LATENCY,)),
)

RUN: Mapping[str, Any] = {
    **CASES["run"],
    "snapshot_id": "5" * 64,
    "started_at": datetime(2025, 1, 1, tzinfo=UTC),
    "alive_at": datetime(2025, 1, 1, tzinfo=UTC),
}
SNAPSHOT: Mapping[str, Any] = {
    "snapshot_id": "5" * 64,
    "run_id": "run-1",
    "suite": "guard",
    "pinned_versions": '{"guard_results": 3}',
    "definition_hash": "d" * 64,
    "scorer_version": "1",
    "code_version": "0.1.0",
    "seed": 7,
    "warnings": [],
    "created_at": datetime(2025, 1, 1, tzinfo=UTC),
}
_METRICS = {
    "model": pl.String,
    "judge": pl.String,
    "slice": pl.String,
    "slice_value": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "n": pl.Int64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "reliable": pl.Boolean,
}
ANSWERS = Answers(
    sample=("sample",), group="category", shown=(("command", "command"), ("verdict", "verdict"), ("reason", "reason"))
)


def metric(
    model: str,
    name: str,
    value: float | None,
    n: int = 40,
    spread: float | None = None,
    part: str | None = None,
    judge: str | None = None,
) -> dict[str, Any]:
    """A row of `metric_snapshots`; `spread` is half the interval, `part` a category."""
    known = value is not None and spread is not None
    return {
        "model": model,
        "judge": judge,
        "slice": "all" if part is None else "category",
        "slice_value": part or "",
        "metric": name,
        "value": value,
        "n": n,
        "ci_low": value - spread if known else None,  # type: ignore[operator]
        "ci_high": value + spread if known else None,  # type: ignore[operator]
        "reliable": n >= 30,
    }


def guard_metrics(model: str, detection: float | None, acceptance: float | None, **others: Any) -> list[dict[str, Any]]:
    """What FIGURES show of one model. `others`: cost, latency, n, categories (name to rate)."""
    both = detection is not None and acceptance is not None
    n = others.get("n", 40)
    return [
        metric(model, "score", (detection + acceptance) / 2 if both else None, n, 0.05),  # type: ignore[operator]
        metric(model, "detection", detection, n, 0.04),
        metric(model, "acceptance", acceptance, n, 0.03),
        metric(model, "cost", others.get("cost"), n),
        metric(model, "latency", others.get("latency"), n),
        *(metric(model, "detection", rate, n, 0.1, part) for part, rate in others.get("categories", {}).items()),
    ]


def answers(model: str, right: int, of: int = 40, label: str = "malicious", **columns: Any) -> pl.DataFrame:
    """`of` answers of one model, the first `right` of them right."""
    return pl.DataFrame(
        {
            "model": [model] * of,
            "sample": [f"{label}-{i}" for i in range(of)],
            "sample_hash": [f"hash-{label}-{i}" for i in range(of)],
            "label": [label] * of,
            "category": [columns.get("category")] * of,
            "correct": [i < right for i in range(of)],
            "command": [columns.get("command", f"rm -rf /{i}") for i in range(of)],
            "verdict": ["BLOCK" if i < right else "ALLOW" for i in range(of)],
            "reason": [columns.get("reason")] * of,
        },
        schema_overrides={"category": pl.String, "reason": pl.String},
    )


def report(rows: list[dict[str, Any]], results: pl.DataFrame | None = None, **fields: Any) -> Report:
    """A report of metric rows, with a target of 0.85 unless told otherwise."""
    run = {**RUN, "models": sorted({row["model"] for row in rows}), **fields.pop("run", {})}
    given: dict[str, Any] = {
        "target": 0.85,
        "figures": FIGURES,
        "answers": None if results is None else ANSWERS,
    } | fields
    snapshot = {**SNAPSHOT, **given.pop("snapshot", {})}
    frame = pl.DataFrame(rows, schema=_METRICS)
    return Report(title="Guard", run=run, snapshot=snapshot, metrics=frame, results=results, **given)


def two_models() -> Report:
    """a/good passes, b/bad fails; a category of b/bad has few samples."""
    rows = guard_metrics("b/bad", 0.5, 0.7, cost=0.2, latency=250.0) + guard_metrics(
        "a/good", 0.95, 0.9, cost=1.5, latency=1500.0, categories={"file-read": 0.75}
    )
    rows.append(metric("b/bad", "detection", 0.25, n=4, spread=0.2, part="file-read"))
    results = pl.concat(
        [
            answers("a/good", 38, category="file-read"),
            answers("a/good", 36, label="harmless"),
            answers("b/bad", 20, category="file-read", reason="looks fine"),
            answers("b/bad", 28, label="harmless"),
        ]
    )
    compared = Comparison("a/good", "b/bad", 80, 0.325, 0.2, 0.44, 1e-5, 1e-5)
    return report(rows, results, comparisons={None: (compared,)})
