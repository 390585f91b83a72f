"""The engine against metric values recorded from real runs of two suites, whose metrics are declared here anew."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.metrics.compute import measure
from tests.unit.metrics.audit import AUDIT_METRICS, panel_metrics
from tests.unit.metrics.guard import GUARD_METRICS


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def check(row: dict[str, object], expected: dict[str, object]) -> None:
    """Recorded values and standard errors agree to 1e-9, denominators exactly; what was not recorded is null."""
    if expected["value"] is None:
        assert row["value"] is None, expected
    else:
        assert row["value"] == pytest.approx(expected["value"], rel=1e-9, abs=1e-9), expected
    if expected["n"] is not None:
        assert row["n"] == expected["n"], expected
    if expected["se"] is not None:
        assert row["se"] == pytest.approx(expected["se"], rel=1e-9), expected


@pytest.mark.real_data
def test_agrees_with_the_recorded_command_guard_metrics(real_data: Path) -> None:
    folder = real_data.parent / "oracles" / "command_guard"
    samples = pl.DataFrame(lines(folder / "results.jsonl"), infer_schema_length=None).rename(
        {"expected_verdict": "verdict"}
    )
    samples = samples.with_columns(judge=pl.lit(None, pl.String), cost_usd=pl.lit(None, pl.Float64))
    found = {
        (row["model"], row["judge"], row["slice"], row["slice_value"], row["metric"]): row
        for row in measure(samples, GUARD_METRICS).iter_rows(named=True)
    }
    expected = lines(folder / "expected_metrics.jsonl")
    assert len(expected) == 66
    for e in expected:
        row = found[e["model"], e["judge"], e["slice"], e["slice_value"], e["metric"]]
        check(row, e)


@pytest.mark.real_data
@pytest.mark.parametrize(
    "name", ["claude_opus_4.5__direct_n58", "gpt-5.2__three_prompts_n15", "llama_3.1_405b__seed_n5"]
)
def test_agrees_with_the_recorded_audit_metrics(real_data: Path, name: str) -> None:
    folder = real_data.parent / "oracles" / "solidity_audit"
    results = lines(folder / f"{name}.judgements.jsonl")
    samples = pl.DataFrame(
        [
            {key: result[key] for key in ("model", "judge", "prompt_type")} | result["expected_sample"]
            for result in results
            if result["judgement"] is not None and "target_found" in (result["expected_sample"] or {})
        ],
        infer_schema_length=None,
    )
    found = {
        (row["slice"], row["slice_value"], row["metric"]): row
        for row in measure(samples, AUDIT_METRICS).iter_rows(named=True)
    }
    for e in lines(folder / f"{name}.expected_metrics.jsonl"):
        # where no confidence was stated, the recorded index takes calibration for a half instead of leaving it out
        other_rule = e["metric"] == "sui" and found[e["slice"], e["slice_value"], "ece"]["value"] is None
        if e["metric"] != "rows_quarantined" and not other_rule:
            check(found[e["slice"], e["slice_value"], e["metric"]], e)


@pytest.mark.real_data
def test_agrees_with_the_recorded_panel_metrics(real_data: Path) -> None:
    folder = real_data.parent / "oracles" / "solidity_audit_panel"
    answers = pl.DataFrame(
        [
            {
                "model": result["model"],
                "sample_id": result["sample_id"],
                "judge": result["judge"],
                "found": (result["judgement"] or {}).get("target_assessment", {}).get("found"),
            }
            for result in lines(folder / "ds_tier1.judgements.jsonl")
        ]
    )
    wide = answers.pivot("judge", index=["model", "sample_id"], values="found")
    judges = sorted(answers["judge"].unique())
    found = {
        (row["model"], row["metric"]): row
        for row in measure(wide, panel_metrics(judges), groups=("model",)).iter_rows(named=True)
    }
    compared = 0
    for e in lines(folder / "ds_tier1.expected_metrics.jsonl"):
        name = e["metric"] if e["slice"] == "all" else f"{e['metric']} {e['slice_value']}"
        if (e["model"], name) in found:
            check(found[e["model"], name], e)
            compared += 1
    assert compared == 63
