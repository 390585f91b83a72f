"""A run is held against rules: each is passed, failed or undecided; and a rule that means nothing is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.tables import RUNS
from evalake.core.errors import UsageError
from evalake.decisions.compare import compare_sides
from evalake.decisions.gate import _warnings, hold_gate
from evalake.decisions.sides import find_side
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.registry import suite
from evalake.tasks.runtime.context import RunContext
from tests.integration.cli.command import recorded
from tests.integration.storage.recorded_lake import MODELS


def test_a_baseline_that_no_rule_compares_with_is_said(guard: RunContext) -> None:
    other, rule = f"{guard.run_id}:{MODELS[0]}", "accuracy >= 0.5"
    *_, note = hold_gate(guard.lake, f"{guard.run_id}:{MODELS[1]}", [rule], baseline=other).warnings
    assert note == f'no rule compares with the baseline {other}: one like "no significant drop in accuracy" does'
    compared = hold_gate(guard.lake, guard.run_id, [rule, "no significant drop in accuracy"], baseline=other)
    assert not [each for each in compared.warnings if "no rule compares" in each]


@pytest.mark.parametrize(
    "rule", ["balanced_accuracy >= 85", "format_error_rate <= 5", "accuracy <= -1", "no drop over 2 in accuracy"]
)
def test_a_number_outside_the_range_is_refused_since_it_always_passes_or_never(guard: RunContext, rule: str) -> None:
    with pytest.raises(UsageError, match="decides nothing"):
        hold_gate(guard.lake, guard.run_id, [rule], baseline=guard.run_id)


def test_another_mix_than_that_of_the_datasets_is_said(guard: RunContext) -> None:
    side = find_side(guard.lake, guard.run_id, None)
    drawn = {"parameters": json.dumps({"limit": 40}), "dataset_versions": json.dumps({"big": "1", "small": "2"})}
    told = [_warnings(replace(side, run=side.run | more)) for more in (drawn, {})]
    assert [any("40 samples of each of 2 datasets" in each for each in said) for said in told] == [True, False]


def test_nothing_is_claimed_of_amounts_with_a_heavy_tail(tmp_path: Path) -> None:
    """One model's latency has a heavy tail: neither its mean, nor a change of it, passes or fails."""
    slow = np.random.default_rng(1).lognormal(5, 2.5, 120)
    latencies = {MODELS[0]: slow, MODELS[1]: np.full(120, 100.0) + np.arange(120)}
    lines = [
        json.dumps(json.loads(recorded(n, model, "BLOCK")) | {"latency_ms": float(of_model[n])})
        for model, of_model in latencies.items()
        for n in range(120)
    ]
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, suite("command_guard"), [tmp_path / "lines.jsonl"])
    changes = ["no significant rise in latency_ms_mean", "no significant drop in latency_ms_mean"]
    rules = [*changes, "no rise over 1e9 in latency_ms_mean", "latency_ms_mean <= 1e9", "latency_ms_mean <= 1"]
    gate = hold_gate(lake, f"{run_id}:{MODELS[0]}", rules, baseline=f"{run_id}:{MODELS[1]}")
    assert {str(check.decision.verdict) for check in gate.checks} == {"UNDECIDED"}
    assert all("nothing is claimed either way" in (check.reason or "") for check in gate.checks)
    compared = compare_sides(lake, *MODELS, run_id=run_id)
    assert not compared.forced
    assert any(note.startswith("latency_ms_mean: ") and "no significance" in note for note in compared.remarks)
    even = hold_gate(lake, f"{run_id}:{MODELS[1]}", ["latency_ms_mean <= 1000"])
    assert [str(check.decision.verdict) for check in even.checks] == ["PASS"]


def test_strata_of_a_draw_narrow_limits_and_intervals(tmp_path: Path) -> None:
    """Malicious commands are nearly always right, harmless ones nearly never; the same answers, drawn and not."""
    lines = [
        recorded(n, model, "BLOCK" if n % 2 == 0 and n % other else ("ALLOW" if n % other == 0 else "BLOCK"))
        for model, other in ((MODELS[0], 20), (MODELS[1], 25))
        for n in range(200)
    ]
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, suite("command_guard"), [tmp_path / "lines.jsonl"])
    widths: dict[str, list[float]] = {}
    for drawn in ("whole", "drawn"):
        if drawn == "drawn":
            run = lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()
            land(lake, RUNS, run.with_columns(parameters=pl.lit('{"limit": 200, "draw": "stratified"}')))
        (check,) = hold_gate(lake, f"{run_id}:{MODELS[0]}", ["accuracy >= 0.5"]).checks
        compared = compare_sides(lake, *MODELS, run_id=run_id, metric="accuracy").rows.row(0, named=True)
        assert check.limit_low is not None
        assert check.limit_high is not None
        widths[drawn] = [check.limit_high - check.limit_low, compared["ci_high"] - compared["ci_low"]]
    assert widths["drawn"][0] < 0.6 * widths["whole"][0]
    assert widths["drawn"][1] <= widths["whole"][1]
