"""Robustness: what transformations cost, paired by base; and what a model knew of a base before it read it."""

from typing import Any

import polars as pl
import pytest

from evalake.suites.solidity_audit.cross_row_metrics import divergence
from evalake.suites.solidity_audit.knowledge import probed
from evalake.suites.solidity_audit.robustness import base_warnings, robustness
from evalake.suites.solidity_audit.truth import KNOWLEDGE, GroundTruth


def audit(base: str, how: str | None, found: bool | None, said: bool = True, **more: Any) -> dict[str, Any]:
    fixed = how == "differential"
    return {
        **{"model": "m", "judge": "j", "prompt_type": "direct", "replicate": 0, "cluster": base, "base": base},
        **{"transformation": how, "sample_hash": f"{base} {how}", "vulnerability_type": "reentrancy"},
        **{"is_vulnerable": not fixed, "target_found": None if fixed else found, "said_vulnerable": said},
        **{"detection_correct": said != fixed, "contaminated": None, "subject_error": None},
        **more,
    }


def knew(base: str, contaminated: bool) -> dict[str, Any]:
    return audit(base, None, None, prompt_type=KNOWLEDGE, said_vulnerable=None, contaminated=contaminated)


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def test_losses_are_paired_by_base_and_gaps_split_by_what_the_model_knew() -> None:
    """Four bases, all found but the last; a disguise loses the first two, of which the model knew one."""
    rows = [audit(base, "original", base != "d") for base in "abcd"]
    rows += [audit(base, "renamed", base == "c", said=base != "d") for base in "abcd"]
    rows += [audit(base, "false_prophet", base != "d") for base in "abcd"]
    rows += [audit(base, "differential", None, said=base == "a") for base in "abcd"]
    rows += [audit("lonely", "renamed", True), knew("a", True), knew("b", False)]
    given = {
        (row["metric"], row["slice"], row["slice_value"]): (row["value"], row["n"], row["units"])
        for row in robustness(frame(rows)).iter_rows(named=True)
    }
    drop = "robustness_drop_target_detection_rate"
    assert given[drop, "transformation", "renamed"] == (0.5, 4, 4)
    assert given[drop, "transformation", "false_prophet"] == (0.0, 4, 4)
    assert given[drop, "all", ""] == (0.25, 8, 4), "the fixed twin has no target, the lonely variant no base"
    assert given["consistency_rate", "transformation", "renamed"] == (0.75, 4, 4)
    assert given["fix_recognised_rate", "all", ""] == (0.75, 4, 4)
    assert given["memorisation_gap", "all", ""] == (0.5, 4, 4)
    assert given["memorisation_gap", "contaminated", "known"] == (1.0, 1, 1)
    assert given["memorisation_gap", "contaminated", "not known"] == (1.0, 1, 1)
    assert list(base_warnings(frame(rows))) == []


def test_the_least_changed_variant_stands_in_for_a_missing_base_and_that_is_said() -> None:
    rows = frame([audit("a", how, how != "trojan") for how in ("trojan", "no_comments", "sanitized")])
    lost = robustness(rows).filter(pl.col("slice") == "transformation", pl.col("metric").str.contains("target"))
    assert dict(lost.select("slice_value", "value").iter_rows()) == {"no_comments": 0.0, "trojan": 1.0}
    assert list(base_warnings(rows)) == [
        "robustness: 1 bases have no original in this run, and are compared with sanitized"
    ]


@pytest.mark.parametrize(
    ("reply", "incident", "recognised", "contaminated"),
    [
        ('{"recognised": true, "project": "Nomad", "incident": "the bridge hack"}', "Nomad Bridge", True, True),
        ('{"recognised": true, "project": "PolyNetwork"}', "Poly Network", True, True),
        ('{"recognised": true, "incident": "Ronin Bridge"}', "Nomad Bridge", True, False),
        ('{"recognised": false, "project": "Nomad"}', "Nomad Bridge", False, False),
        ('{"recognised": true, "project": "Nomad"}', None, True, None),
        ("I cannot say.", "Nomad Bridge", None, None),
        (None, "Nomad Bridge", None, None),
    ],
)
def test_a_probe_is_contaminated_if_the_incident_is_named(
    reply: str | None, incident: str | None, recognised: bool | None, contaminated: bool | None
) -> None:
    truth = GroundTruth(is_vulnerable=True, incident=incident)
    assert probed(reply, truth) == {"recognised": recognised, "contaminated": contaminated}


def test_rules_and_models_as_judges_diverge_where_only_one_side_finds_the_target() -> None:
    said = {"baseline/overlap-judge": "1100", "gpt": "1010", "claude": "1011", "tied": "1001"}
    rows = [
        audit(str(n), None, told == "1", judge=judge, vulnerability_type="ab"[n > 1])
        for judge, answers in said.items()
        for n, told in enumerate(answers)
    ]
    given = {(row["metric"], row["slice_value"]): row["value"] for row in divergence(frame(rows)).iter_rows(named=True)}
    assert given["diverges_from_models_rate", ""] == 0.75
    assert (given["rules_alone_found_rate", ""], given["models_alone_found_rate", ""]) == (0.25, 0.5)
    assert given["diverges_from_models_rate", "b"] == 1.0
    assert divergence(frame(rows).filter(pl.col("judge") != "baseline/overlap-judge")).is_empty()
