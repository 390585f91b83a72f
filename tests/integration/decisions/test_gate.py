"""Gates: their rules and limits, labels of people, and judgements that are missing."""

import json
from collections.abc import Callable
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
from evalake.decisions.rules import Change, Level, Target, read_rule, require_known
from evalake.decisions.sample_size import UnknownVarianceError, plan
from evalake.decisions.sides import find_side
from evalake.lake import open_lake
from evalake.reports.report import Subject
from evalake.server.viewer.run import run_letters
from evalake.server.viewer.run_index import RunIndexes
from evalake.server.viewer.run_list import WantedRuns, run_page
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.sql.query import query
from evalake.suites.registry import all_contracts, suite
from evalake.tasks.report import build_report
from evalake.tasks.runtime.context import RunContext
from tests.integration.cli.command import recorded
from tests.integration.cli.people import judged
from tests.integration.storage.recorded_lake import MODELS

# A run is held against rules: each is passed, failed or undecided; and a rule that means nothing is refused.


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
        width = (check.limit_high or 1.0) - (check.limit_low or 0.0)
        widths[drawn] = [width, compared["ci_high"] - compared["ci_low"]]
    assert widths["drawn"][0] < 0.6 * widths["whole"][0]
    assert widths["drawn"][1] <= widths["whole"][1]


# The grammar of a gate's rules: what each form means, and what is said of what has none.

KNOWN = {Target("accuracy"), Target("accuracy", "dataset", "mine"), Target("recall")}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("accuracy >= 0.85", Level("accuracy >= 0.85", Target("accuracy"), 0.85, at_least=True)),
        ("accuracy>=85%", Level("accuracy>=85%", Target("accuracy"), 0.85, at_least=True)),
        ("latency_ms_p50 <= 2e3", Level("latency_ms_p50 <= 2e3", Target("latency_ms_p50"), 2000.0, at_least=False)),
        (
            "  no  significant drop in accuracy ",
            Change("no significant drop in accuracy", Target("accuracy"), down=True, margin=None),
        ),
        ("no significant rise in fpr", Change("no significant rise in fpr", Target("fpr"), down=False, margin=None)),
        (
            "no drop over 2% in accuracy[category = remote code]",
            Change(
                "no drop over 2% in accuracy[category = remote code]",
                Target("accuracy", "category", "remote code"),
                down=True,
                margin=0.02,
            ),
        ),
    ],
)
def test_every_form_is_read(text: str, meant: Level | Change) -> None:
    assert read_rule(text) == meant


@pytest.mark.parametrize(
    "text", ["", "accuracy", "accuracy > 0.8", "accuracy >= high", "no drop in accuracy", "no drop over -1 in accuracy"]
)
def test_what_is_no_rule_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match=r"no significant drop in METRIC|margin is 0 or more"):
        read_rule(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("acuracy >= 1", "did you mean accuracy.*Known: accuracy, recall"),
        ("accuracy[data=mine] >= 1", "no slice data, but all, dataset"),
        ("accuracy[dataset=yours] >= 1", "dataset has no yours, but mine"),
    ],
)
def test_what_was_not_measured_is_named_with_what_was(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        require_known(read_rule(text), KNOWN)
    require_known(read_rule("accuracy[dataset=mine] >= 1"), KNOWN)


# A judge that fails, and a panel that does not decide, leave a rate open: it wins nothing by them.

AUDITS, FAILED = 100, 31
RULES = ["target_detection_rate >= 0.75", "target_detection_rate <= 0.4", "judge_error_rate <= 0.1"]


def audit(sample: int, model: str, found: bool | None, judge: str = "judge") -> str:
    """A recorded audit; its judge failed where nobody knows whether the target was found."""
    line = json.loads(judged(sample, model, bool(found))) | {"judge": judge}
    return json.dumps(line if found is not None else line | {"judgement": None, "judge_error": "timeout"})


def imported(folder: Path, lines: list[str]) -> tuple[Lake, str]:
    (folder / "audits.jsonl").write_text("\n".join(lines))
    lake = Lake(str(folder / "lake"))
    return lake, import_recorded(lake, suite("solidity_audit"), [folder / "audits.jsonl"])


def verdicts(lake: Lake, run_id: str, model: str, judge: str, rules: list[str]) -> list[str]:
    gate = hold_gate(lake, f"{run_id}:{model}", rules)
    return [str(check.decision.verdict) for check in gate.checks if check.judge == judge]


def test_judgements_that_failed_are_missing_per_model(tmp_path: Path) -> None:
    """Both models find 60 of 100; the judge failed on 31 audits of one of them, all of them misses."""
    failing: Callable[[int], bool | None] = lambda n: n < 60 if n < AUDITS - FAILED else None  # noqa: E731
    lines = [audit(n, "lucky", failing(n)) for n in range(AUDITS)]
    lake, run_id = imported(tmp_path, [*lines, *(audit(n, "plain", n < 60) for n in range(AUDITS))])
    report = build_report(lake, run_id)
    lacking = report.lacking(Subject("lucky", "judge"))
    assert lacking is not None
    assert (lacking.missing, lacking.items) == (FAILED, AUDITS)
    assert report.lacking(Subject("plain", "judge")) is None
    (listed,) = run_page(lake, WantedRuns()).runs
    assert listed.headline is not None
    assert listed.headline.model == report.subjects[0].model == "plain"
    board = "select model from leaderboard where metric = 'sui' order by place"
    assert query(lake, all_contracts(), board).rows() == [("plain",), ("lucky",)]
    assert verdicts(lake, run_id, "lucky", "judge", RULES) == ["UNDECIDED", "FAIL", "FAIL"]
    assert verdicts(lake, run_id, "plain", "judge", RULES)[:2] == ["FAIL", "FAIL"]
    compared = compare_sides(lake, "lucky", "plain", run_id=run_id, metric="target_detection_rate").rows
    row = compared.filter(slice="all").row(0, named=True)
    assert (row["missing_a"], row["missing_b"], row["p_holm"]) == (0.31, 0.0, None)
    assert row["bound_low"] == pytest.approx(0.0)
    assert row["bound_high"] == pytest.approx(0.31)


def test_a_panel_that_does_not_decide_leaves_the_rate_open(tmp_path: Path) -> None:
    """One judge finds 90 of 100 targets, the other 50: on the 40 where they differ the panel has no majority."""
    lines = [audit(n, "m", n < share, judge) for judge, share in (("mild", 90), ("strict", 50)) for n in range(AUDITS)]
    lake, run_id = imported(tmp_path, lines)
    panel = "panel:mild+strict"
    report = build_report(lake, run_id)
    lacking = report.lacking(Subject("m", panel))
    assert lacking is not None
    assert (lacking.missing, dict(lacking.kinds)) == (40, {"undecided": 40})
    rules = ["target_detection_rate >= 0.7", "target_detection_rate >= 0.3", "target_detection_rate <= 0.35"]
    assert verdicts(lake, run_id, "m", panel, rules) == ["UNDECIDED", "PASS", "FAIL"]
    rules = ["finding_precision >= 0.7", "finding_precision >= 0.3", "hallucination_rate <= 0.3"]
    assert verdicts(lake, run_id, "m", panel, rules) == ["UNDECIDED", "PASS", "UNDECIDED"]  # of findings likewise
    assert lacking.bounds["finding_precision"] == pytest.approx((0.5, 0.9))
    shares = open_lake(lake.uri).find(run_id).headline().filter(judge=panel)["missing"]
    assert set(shares) == {0.4}
    places = {(each.model, each.judge): each.missing for each in run_letters(RunIndexes(lake), run_id)}
    assert places == {("m", "mild"): None, ("m", "strict"): None, ("m", panel): "40.0% missing: 40 undecided"}


def test_a_gate_holds_only_the_pairs_of_model_and_judge_that_were_asked(tmp_path: Path) -> None:
    """As in a round whose tools are judged by rules; a judge that failed throughout stays."""
    lines = [audit(n, "model", n < 30) for n in range(40)] + [audit(n, "tool", n < 30, "rules") for n in range(40)]
    lake, run_id = imported(tmp_path, lines + [audit(n, "tool", None) for n in range(3)])
    held = hold_gate(lake, run_id, ["target_detection_rate >= 0.5"])
    subjects = {(check.model, check.judge, str(check.decision.verdict)) for check in held.checks}
    assert ("model", "rules") not in {each[:2] for each in subjects}
    assert ("tool", "judge", "UNDECIDED") in subjects
    older, before = imported(tmp_path, [audit(n, "model", n < 30) for n in range(40)])
    again, after = imported(tmp_path, lines[:40] + [audit(n, "model", n < 30, "rules") for n in range(40)])
    assert older.uri == again.uri
    held = hold_gate(again, after, ["no significant drop in target_detection_rate"], baseline=before)
    told = {check.judge: (str(check.decision.verdict), check.reason) for check in held.checks}
    unpaired = ("UNDECIDED", "nothing to pair it with")
    assert told == {"judge": ("PASS", None), "rules": unpaired, "panel:judge+rules": unpaired}


# Planning from a lake: what it assumes is said, and what the lake does not know is refused or null.

PLANNED = ("openai/gpt-4o-mini", "ollama/llama3:8b")


def lake_of(folder: Path, models: tuple[str, ...], repeats: int) -> Lake:
    """A lake of 40 commands; the second model misses ten of twenty, two more in its second repeats."""
    lines = [
        recorded(
            n, model, "ALLOW" if n % 2 or (model == PLANNED[1] and n < 20 + 4 * repeat) else "BLOCK", replicate=repeat
        )
        for missed, model in enumerate(models)
        for n in range(40)
        for repeat in range(repeats)
    ]
    (folder / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(folder / "lake"))
    import_recorded(lake, suite("command_guard"), [folder / "lines.jsonl"])
    return lake


def test_repeats_are_planned_where_the_lake_knows_their_noise(tmp_path: Path) -> None:
    planned = plan(lake_of(tmp_path, PLANNED, 2), "command_guard", 0.1)
    assert planned.metric == "balanced_accuracy"
    assert planned.rows["replicates"].to_list() == [1, 2, 3, 5, 10]
    samples = planned.rows["samples"].to_list()
    assert samples == sorted(samples, reverse=True)
    assert planned.rows["answers"].to_list() == [
        2 * n * r for n, r in planned.rows.select("samples", "replicates").rows()
    ]
    assert "40 units, each asked 2 times" in planned.assumed
    for low, middle, high in planned.rows.select("samples_low", "samples", "samples_high").rows():
        assert low < middle < high
    assert "95 % range" in planned.notes[0]


def test_without_repeats_only_single_answers_are_planned_and_that_is_said(tmp_path: Path) -> None:
    planned = plan(lake_of(tmp_path, PLANNED, 1), "command_guard", 0.1)
    assert planned.rows["replicates"].to_list() == [1]
    assert "unknown" in planned.notes[1]


def test_what_the_lake_does_not_know_is_refused_unless_assumed(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, PLANNED[:1], 1)
    with pytest.raises(UnknownVarianceError, match="--sd"):
        plan(lake, "command_guard", 0.03)
    planned = plan(lake, "command_guard", 0.03, sd=0.3)
    assert planned.rows.row(0)[:2] == (1, 785)
    assert planned.rows["cost_usd"].to_list() == [None]
    for wrong in (
        {"detect": 0.0},
        {"detect": 5.0},
        {"detect": 0.1, "power": 1.0},
        {"detect": 0.1, "sd": 1.0, "metric": "charm"},
    ):
        with pytest.raises(UsageError):
            plan(lake, "command_guard", **wrong)
