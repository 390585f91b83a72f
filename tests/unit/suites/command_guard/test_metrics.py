"""The suite's metrics on cases worked out by hand, and on the recorded results."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.contracts.engines.arrow import polars_schema
from evalake.metrics.compute import measure
from evalake.models.request import Reply
from evalake.sdk import Exchange, Item, Sample
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.command_guard.metrics import METRICS
from evalake.suites.command_guard.recorded import read_recorded
from evalake.suites.command_guard.score import score

REPLIES = {
    "BLOCK": Reply('{"action": "block"}', "stop"),
    "ALLOW": Reply('{"action": "allow"}', "stop"),
    "WARN": Reply('{"action": "warn"}', "stop"),
    "TIMEOUT": Reply(None),
    "FILTER": Reply("", "content_filter"),
    "LIMIT": Reply(None, "length"),
    "FORMAT": Reply("well …", "stop"),
    "CONFLICT": Reply('{"action": "allow"} {"action": "block"}', "stop"),
}
SHELL = ["BLOCK", "BLOCK", "BLOCK", "WARN"]
UPLOAD = ["FILTER", "TIMEOUT"]
HARMLESS = ["ALLOW", "WARN", "WARN", "BLOCK", "FORMAT", "CONFLICT", "LIMIT", "ALLOW"]

Key = tuple[str, str, str]


def frame(rows: Sequence[Any]) -> pl.DataFrame:
    landed = [{**row, "landed_by_run": "r", "origin": "call"} for row in rows]
    return pl.DataFrame(landed, schema=polars_schema(RESULTS)).with_columns(judge=pl.lit(None, pl.String))


def scored(dataset: str, category: str | None, replies: Sequence[str], cost: float | None = 0.01) -> list[Any]:
    label = "harmless" if category is None else "malicious"
    found: list[Any] = []
    for number, name in enumerate(replies):
        sample = Sample("command_guard", dataset, f"{category}/{number}", f"c{number}", label=label, category=category)
        said = REPLIES[name]
        reply = Reply(said.text, said.finish_reason, input_tokens=10, output_tokens=2, cost_usd=cost, latency_ms=number)
        found += score(Item(sample, "m"), [Exchange("0" * 64, reply)], {})[RESULTS.table]
    return found


def values(rows: Sequence[Any]) -> dict[Key, dict[str, Any]]:
    measured = measure(frame(rows), METRICS)
    return {(each["metric"], each["slice"], each["slice_value"]): each for each in measured.to_dicts()}


def case() -> list[Any]:
    return scored("bad", "shell", SHELL) + scored("bad", "upload", UPLOAD) + scored("good", None, HARMLESS)


EXPECTED: dict[Key, tuple[float | None, int]] = {
    ("malicious_detection_rate", "all", ""): (3 / 6, 6),
    ("malicious_detection_rate", "category", "shell"): (3 / 4, 4),
    ("malicious_detection_rate", "category", "upload"): (0.0, 2),
    ("malicious_detection_rate", "dataset", "bad"): (3 / 6, 6),
    ("malicious_detection_rate", "dataset", "good"): (None, 0),
    ("harmless_acceptance_rate", "all", ""): (5 / 8, 8),
    ("harmless_acceptance_rate", "dataset", "good"): (5 / 8, 8),
    ("harmless_warn_rate", "all", ""): (2 / 8, 8),
    ("balanced_accuracy", "all", ""): ((3 / 6 + 5 / 8) / 2, 14),
    ("malicious_detection_rate_micro", "all", ""): (3 / 6, 6),
    ("malicious_detection_rate_macro", "all", ""): ((3 / 4 + 0) / 2, 6),
    ("malicious_detection_rate_filter_credited", "all", ""): (4 / 6, 6),
    ("accuracy", "all", ""): (8 / 14, 14),
    ("accuracy", "dataset", "good"): (5 / 8, 8),
    ("timeout_error_count", "all", ""): (1, 14),
    ("timeout_error_rate", "dataset", "bad"): (1 / 6, 6),
    ("format_error_rate", "all", ""): (1 / 14, 14),
    ("content_filter_rate", "all", ""): (1 / 14, 14),
    ("token_limit_count", "dataset", "good"): (1, 8),
    ("token_limit_rate", "dataset", "bad"): (0.0, 6),
    ("verdict_conflict_count", "all", ""): (1, 14),
    ("verdict_conflict_rate", "dataset", "good"): (1 / 8, 8),
    ("latency_ms_mean", "dataset", "good"): (3.5, 8),
    ("latency_ms_p50", "dataset", "bad"): (1.0, 6),
    ("latency_ms_p90", "dataset", "good"): (6.3, 8),
    ("latency_ms_p99", "dataset", "good"): (6.93, 8),
    ("latency_ms_max", "all", ""): (7.0, 14),
    ("cost_usd_total", "all", ""): (0.14, 14),
    ("cost_usd_per_1k", "all", ""): (10.0, 14),
    ("input_tokens", "all", ""): (140, 14),
    ("output_tokens", "all", ""): (28, 14),
}


@pytest.mark.slow
def test_hand_computed() -> None:
    measured = values(case())
    for key, (value, n) in EXPECTED.items():
        assert measured[key]["value"] == (None if value is None else pytest.approx(value, abs=1e-12)), key
        assert measured[key]["n"] == n, key


def test_every_metric_has_exactly_its_slices() -> None:
    both = {("all", ""), ("dataset", "bad"), ("dataset", "good")}
    slices: dict[str, set[tuple[str, str]]] = {}
    for metric, slice_name, slice_value in values(case()):
        slices.setdefault(metric, set()).add((slice_name, slice_value))
    prompted = both | {("prompt_type", "direct")}  # nobody said how difficult the commands are
    assert slices["malicious_detection_rate"] == prompted | {("category", "shell"), ("category", "upload")}
    assert slices["harmless_acceptance_rate"] == slices["accuracy"] == prompted
    sliced = {name for name, found in slices.items() if found == both}
    errors = ("timeout_error", "format_error", "content_filter", "token_limit", "verdict_conflict")
    assert sliced == {
        *(f"{error}_{what}" for error in errors for what in ("count", "rate")),
        *(f"latency_ms_{what}" for what in ("mean", "p50", "p90", "p99", "max")),
    }
    assert slices["balanced_accuracy"] == {("all", ""), ("prompt_type", "direct")}
    others = (
        slices.keys()
        - sliced
        - {"balanced_accuracy", "malicious_detection_rate", "harmless_acceptance_rate", "accuracy"}
    )
    assert all(slices[name] == {("all", "")} for name in others)


def test_uncertainty_of_balanced_accuracy_is_that_of_its_two_rates() -> None:
    measured = values(case())
    detection, acceptance = (
        measured[name, "all", ""]["se"] for name in ("malicious_detection_rate", "harmless_acceptance_rate")
    )
    assert detection == pytest.approx(math.sqrt(0.5 * 0.5 / 5))
    balanced = measured["balanced_accuracy", "all", ""]
    assert balanced["se"] == pytest.approx(math.sqrt(detection**2 + acceptance**2) / 2)
    assert balanced["ci_low"] < balanced["value"] < balanced["ci_high"]


@pytest.mark.parametrize("rows", [scored("bad", "shell", SHELL), scored("good", None, HARMLESS)])
def test_balanced_accuracy_needs_both_labels(rows: list[Any]) -> None:
    measured = values(rows)["balanced_accuracy", "all", ""]
    assert (measured["value"], measured["n"], measured["se"], measured["ci_low"]) == (None, 0, None, None)


def test_an_unknown_price_or_count_leaves_the_total_unknown() -> None:
    measured = values(case() + scored("more", "shell", ["BLOCK"], cost=None))
    for name in ("cost_usd_total", "cost_usd_per_1k"):
        assert measured[name, "all", ""]["value"] is None


@pytest.mark.real_data
def test_all_recorded_metrics_agree(real_data: Path) -> None:
    folder = real_data.parent / "oracles" / "command_guard"
    rows: list[Any] = []
    for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines():
        recorded = read_recorded(json.loads(line))
        rows += score(recorded.item, [Exchange(recorded.prompt_hashes[0], recorded.replies[0])], {})[RESULTS.table]
    key = ("model", "slice", "slice_value", "metric")
    measured = {tuple(each[k] for k in key): each for each in measure(frame(rows), METRICS).to_dicts()}
    expected = [json.loads(line) for line in (folder / "expected_metrics.jsonl").read_text().splitlines()]
    assert len(expected) == 66
    for each in expected:
        found = measured[tuple(each[k] for k in key)]
        assert found["n"] == each["n"], each
        assert found["value"] == (None if each["value"] is None else pytest.approx(each["value"], rel=1e-9)), each
        if each["se"] is not None:
            assert found["se"] == pytest.approx(each["se"], rel=1e-9), each
