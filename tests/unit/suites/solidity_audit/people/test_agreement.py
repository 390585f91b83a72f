"""Judges are held against people's labels, and their rates corrected by them."""

import numpy as np
import polars as pl
import pytest

from evalake.suites.solidity_audit.cross_row_metrics import cross_row_metrics
from evalake.suites.solidity_audit.people import finding_precision
from evalake.suites.solidity_audit.truth import DEFAULTS
from tests.unit.suites.solidity_audit.people.material import FOUND, people_say
from tests.unit.suites.solidity_audit.support import SAFE, frame_of, judgement, line, rows_of


def test_judges_are_held_against_people_and_corrected_by_them() -> None:
    """The judge finds every target; people say that it is wrong about every fourth."""
    lines = [line(n, judged=FOUND) for n in range(80)] + [line(80 + n, SAFE, judgement(said=False)) for n in range(5)]
    results, _ = rows_of(lines)
    answers = {f"s{n}": n % 4 != 0 for n in range(40)}
    frame = frame_of(lines, people_say(results, answers))
    rows = {row["metric"]: row for row in cross_row_metrics(frame, DEFAULTS).iter_rows(named=True)}
    corrected = rows["target_detection_rate_corrected"]
    assert corrected["value"] == pytest.approx(0.75)
    assert corrected["n"] == 40
    assert corrected["ci_low"] < 0.75 < corrected["ci_high"] < 1.0
    assert rows["judge_human_agreement"]["value"] == pytest.approx(0.75)
    assert rows["judge_found_human_missed"]["value"] == 10
    assert rows["judge_missed_human_found"]["value"] == 0
    assert (rows["judge_human_kappa"]["value"], rows["judge_human_kappa"]["n"]) == (0.0, 40)
    assert (rows["finding_precision_corrected"]["value"], rows["finding_precision_corrected"]["n"]) == (None, 0)


def test_audits_without_findings_do_not_raise_the_corrected_precision() -> None:
    """Half of the audits find nothing; of the others' two findings people confirm 0 to 2, whatever the judge says."""
    rng = np.random.default_rng(20)
    total = np.tile([0, 2], 1000)
    judge, human = (np.where(total > 0, rng.integers(low, 3, len(total)), 0) for low in (1, 0))
    drawn = rng.random(len(total)) < 0.2
    rows = pl.DataFrame({"total_findings": total, "valid_findings": judge, "human_valid_findings": human})
    labelled = pl.Series(drawn) & (rows["total_findings"] > 0)  # where there is no finding there is none to label
    rows = rows.with_columns(
        pl.when(labelled).then("human_valid_findings").alias("human_valid_findings"),
        human_weight=pl.when(pl.Series(drawn)).then(5.0),
        sample_hash=pl.int_range(pl.len()).cast(pl.String),
        cluster=pl.int_range(pl.len()).cast(pl.String),
        prompt_hash=pl.lit("p"),
        replicate=pl.lit(0),
    )
    corrected = finding_precision(rows)
    assert corrected is not None
    assert corrected.ci_low < human.sum() / total.sum() < corrected.ci_high
    assert corrected.labels == labelled.sum()


def test_picked_labels_correct_nothing() -> None:
    lines = [line(n, judged=FOUND) for n in range(40)]
    results, _ = rows_of(lines)
    frame = frame_of(lines, people_say(results, {f"s{n}": False for n in range(20)}, chance=None))
    rows = {row["metric"]: row for row in cross_row_metrics(frame, DEFAULTS).iter_rows(named=True)}
    assert rows["target_detection_rate_corrected"]["value"] is None
    assert rows["judge_human_agreement"]["value"] == 0.0


def test_without_labels_nothing_is_said_of_people() -> None:
    rows = cross_row_metrics(frame_of([line(0, judged=FOUND)]), DEFAULTS)
    assert not rows["metric"].str.contains("human|corrected").any()
