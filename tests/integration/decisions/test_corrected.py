"""Conclusions by corrected rates: people's labels, or a calibration, take the place of a judge's word."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.core.configuration import Configuration
from evalake.decisions.compare import compare_sides
from evalake.decisions.gate import hold_gate
from evalake.metrics.corrected import Corrected, Known, by_calibration, more_labels
from evalake.reports.report import Subject
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import find_snapshot
from evalake.suites.registry import suite
from evalake.tasks.calibrate import calibrate, pairs_known
from evalake.tasks.corrected import corrections
from evalake.tasks.measure import run_frame
from evalake.tasks.report import build_report
from evalake.tasks.runtime.context import RunContext
from tests.integration.cli.people import judged

AUDITS, LABELLED = 200, 120
TRULY = {"plain": 0.5, "flattered": 0.5}
SAID = {"plain": 0.5, "flattered": 0.9}
"""What the judge says: of one model it calls many misses found."""


def test_labels_of_people_reach_gate_comparison_and_ranking(tmp_path: Path) -> None:
    lines = [judged(n, model, n < said * AUDITS) for model, said in SAID.items() for n in range(AUDITS)]
    (tmp_path / "audits.jsonl").write_text("\n".join(lines))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, suite("solidity_audit"), [tmp_path / "audits.jsonl"])
    _label(lake)

    def verdicts(rule: str, *, corrected: bool) -> list[str]:
        gate = hold_gate(lake, f"{run_id}:flattered", [rule], corrected=corrected)
        assert any("corrected by people's labels of 120" in note for note in gate.notes) == corrected
        return [str(check.decision.verdict) for check in gate.checks]

    rule = "target_detection_rate >= 0.8"
    assert (verdicts(rule, corrected=False), verdicts(rule, corrected=True)) == (["PASS"], ["FAIL"])
    for corrected, apart in ((False, True), (True, False)):
        compared = compare_sides(
            lake, "flattered", "plain", run_id=run_id, metric="target_detection_rate", corrected=corrected
        )
        row = compared.rows.filter(slice="all").row(0, named=True)
        assert (row["p_holm"] < 0.05) == apart == (row["ci_low"] > 0)
    report = build_report(lake, run_id, corrected=True)
    rates = report.metrics.filter(metric="target_detection_rate", slice="all")
    assert rates["value"].to_list() == pytest.approx([0.5, 0.5], abs=0.08)
    assert any("corrected" in warning for warning in report.snapshot["warnings"])
    assert Subject("flattered", "judge") in report.standings


def test_a_calibration_corrects_where_nobody_labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = "baseline/overlap-judge"
    lines = [json.dumps(json.loads(judged(n, "m", n < 60)) | {"judge": judge}) for n in range(100)]
    (tmp_path / "audits.jsonl").write_text("\n".join(lines))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, suite("solidity_audit"), [tmp_path / "audits.jsonl"])
    snapshot = find_snapshot(lake, run_id=run_id)
    assert corrections(lake, snapshot) == {}
    context = RunContext(run_id, "solidity_audit", lake, Configuration())
    calibrate(context, judge)
    (known,) = [each for (*_, name), each in corrections(lake, snapshot).items() if name == "target_detection_rate"]
    assert known.how.startswith("by a calibration: sensitivity 0.")
    assert known.ci_high - known.ci_low > 0.2  # wider than the raw interval: the judge's errors are known from few
    (check,) = hold_gate(lake, run_id, ["target_detection_rate >= 0.2"], corrected=True).checks
    assert (check.value, check.ci_low, check.units) == (known.value, known.ci_low, 100)
    pairs = pairs_known(context, judge)
    assert pairs is not None
    unusable = pairs.with_columns(second=pl.lit(None, pl.String), agrees=False)
    monkeypatch.setattr("evalake.tasks.corrected.pairs_known", lambda *_: pl.concat([pairs, unusable]))
    assert known in corrections(lake, snapshot).values()
    number, rate = pl.col("sample_id").str.slice(1).cast(pl.Int64), ("m", judge, "target_detection_rate")
    audited = lake.frame(suite("solidity_audit").results).filter(number < 70).collect()
    silent = pl.when(number >= 70).then(pl.lit("timeout")).alias("subject_error")
    monkeypatch.setattr("evalake.tasks.corrected.run_frame", lambda *given: run_frame(*given).with_columns(silent))
    of_audited = corrections(lake, snapshot, audited)[rate].value
    assert corrections(lake, snapshot)[rate].value == pytest.approx(0.7 * of_audited)


def _label(lake: Lake) -> None:
    """Land a person's word on every audit of a draw: the first half of all targets is found."""
    results = lake.frame(suite("solidity_audit").results).collect()
    drawn = results.filter(pl.col("sample_id").str.slice(1).cast(pl.Int64) % 5 < 3)
    when = datetime(2025, 1, 1, tzinfo=UTC)
    rows = [
        {
            **dict.fromkeys(HUMAN_LABELS.column),
            **{name: row[name] for name in ("sample_id", "sample_hash", "model", "prompt_type", "replicate")},
            **{"label_id": f"{n:064d}", "suite": "solidity_audit", "question": "target_found", "annotator": "ann"},
            **{"labelled_at": when, "inclusion_probability": LABELLED / AUDITS, "draw": "one"},
            "answer": "yes" if int(row["sample_id"][1:]) < TRULY[row["model"]] * AUDITS else "no",
        }
        for n, row in enumerate(drawn.iter_rows(named=True))
    ]
    land(lake, HUMAN_LABELS, conform(rows, HUMAN_LABELS))


def test_a_calibrated_rate_holds_the_truth_with_the_errors_of_all_three() -> None:
    """Rogan-Gladen with both uncertainties, where the raw rate's interval hardly ever holds it."""
    rng, held, times = np.random.default_rng(5), 0, 1000
    for _ in range(times):
        sensitivity, specificity = rng.binomial(40, 0.9) / 40, rng.binomial(40, 0.8) / 40
        rate = rng.binomial(300, 0.3 * 0.9 + 0.7 * 0.2) / 300
        known = by_calibration(Known(rate, 300), Known(sensitivity, 40), Known(specificity, 40), 300)
        assert isinstance(known, Corrected)
        held += known.ci_low <= 0.3 <= known.ci_high
    assert 0.93 <= held / times <= 0.99
    assert by_calibration(Known(0.5, 300), Known(0.5, 40), Known(0.5, 40), 300) is None
    half = {"value": 0.5, "n_eff": 25, "ci_low": 0.3, "ci_high": 0.7, "units": 9}
    assert Corrected(1.0, 0.0, 1.0, 1.0, 9, "exact").of_share(half) == Corrected(0.5, 0.1, 0.3, 0.7, 9, "exact")


def test_more_labels_are_advised_only_where_they_help() -> None:
    assert more_labels(0.1, 0.0, 50) == 150
    assert more_labels(0.1, 0.03, 50) == round(50 * ((0.01 - 0.0009) / (0.0025 - 0.0009) - 1))
    assert more_labels(0.1, 0.06, 50) is None
