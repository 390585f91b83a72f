"""Judges: panels, contradictions and their versions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.contracts.tables import CALLS, METRIC_SNAPSHOTS, QUARANTINE, RUN_COVERAGE, RUN_ITEMS, RUNS, SNAPSHOTS
from evalake.core.configuration import read_configuration
from evalake.core.errors import ProviderError, UsageError
from evalake.flows.evaluate import IncompleteRunError, evaluate
from evalake.flows.judges import calibrate
from evalake.reports.coverage import STOOD_IN
from evalake.storage.lake import Lake
from evalake.suites.session_review.contract import RESULTS as SCORES
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.tasks.coverage import coverage_of
from evalake.tasks.report import build_report
from evalake.tasks.rescore import rescore
from evalake.tasks.runtime.form import run_id_of
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.judges import CONTRADICTIONS, ContradictoryJudge, Messages, doubting, strict
from tests.servers.model_server import ModelServer

# Judges and panels over real HTTP: what a panel adds, what a later judge costs, what rescoring and replicates give.

STRICT, DOUBTING, LATE = "hosted_vllm/strict", "hosted_vllm/doubting", "hosted_vllm/late"
SUBJECT = "hosted_vllm/subject"
PATTERNS = "baseline/solidity-patterns"
PANEL = f"panel:{DOUBTING}+{STRICT}"
AUDITS = 8


class Bench:
    """A lake, and a server at which the judges sit; the subject is embedded unless it is asked for there."""

    def __init__(
        self, folder: Path, server: ModelServer, names: Sequence[str] = (STRICT, DOUBTING, LATE, SUBJECT)
    ) -> None:
        self.server, self.lake = server, Lake(str(folder / "lake"))
        self.configuration = folder / "evalake.toml"
        places = [f'[models."{name}"]\napi_base = "{server.api_base}"\n' for name in names]
        self.configuration.write_text("".join(places))

    def run(self, *judges: str, models: Sequence[str] = (), first: int | None = AUDITS, **more: Any) -> str:
        """Run the first audits of the starter data to the end, complete or not; returns the run's id."""
        state = evaluate(
            suite="solidity_audit",
            models=list(models) or [PATTERNS],
            judges=list(judges),
            first=first,
            lake=self.lake.uri,
            configuration_file=str(self.configuration),
            return_state=True,
            **more,
        )
        outcome = state.result(raise_on_failure=False)
        if isinstance(outcome, Exception) and not isinstance(outcome, IncompleteRunError):
            raise outcome
        return run_id_of(str(state.state_details.flow_run_id))

    def metrics(self, run_id: str) -> pl.DataFrame:
        """The metrics of the run's last snapshot."""
        snapshot = self.lake.frame(RUNS).filter(pl.col("run_id") == run_id).collect()["snapshot_id"][0]
        return self.lake.frame(METRIC_SNAPSHOTS).filter(pl.col("snapshot_id") == snapshot).collect()

    def warnings(self, run_id: str) -> str:
        """What its snapshots warn of."""
        rows = self.lake.frame(SNAPSHOTS).filter(pl.col("run_id") == run_id).collect()
        return " ".join(said for warned in rows["warnings"].to_list() for said in warned)

    def asked(self, model: str) -> int:
        """How many requests the server has had for a model."""
        return len(self.server.requests(model=model.partition("/")[2]))


@pytest.fixture
def bench(tmp_path: Path, model_server: ModelServer) -> Bench:
    model_server.rule(model="strict", reply=strict)
    model_server.rule(model="doubting", reply=doubting)
    model_server.rule(model="late", reply=strict)
    model_server.rule(model="subject", reply=json.dumps({"verdict": "safe", "confidence": 0.9, "findings": []}))
    return Bench(tmp_path, model_server)


def test_a_judge_with_other_parameters_is_asked_again_and_earlier_runs_are_scored_as_asked(bench: Bench) -> None:
    first = bench.run(STRICT)
    bench.server.rule(model="subject", reply="")  # which leaves its judge nothing to judge
    empty = bench.run(STRICT, models=[SUBJECT], first=1)
    configured = bench.configuration.read_text()
    changed = "".join(f'[models."{name}".parameters]\ntemperature = 0.5\n' for name in (STRICT, SUBJECT))
    bench.configuration.write_text(configured + changed)
    for run_id in (first, empty):
        rescored = rescore(bench.lake, run_id, read_configuration(bench.configuration))
        assert (rescored.unanswered, rescored.published.landed.inserted) == (0, 0)
    bench.run(STRICT)
    assert bench.asked(STRICT) == 2 * AUDITS
    assert bench.lake.frame(RESULTS).filter(model=PATTERNS).collect()["judge_hash"].n_unique() == 2 * AUDITS


def test_a_panel_lands_beside_its_judges_and_a_later_judge_costs_its_own_calls_only(bench: Bench) -> None:
    first = bench.run(STRICT, DOUBTING)
    assert (bench.asked(STRICT), bench.asked(DOUBTING)) == (AUDITS, AUDITS)
    results = bench.lake.frame(RESULTS).collect()
    assert dict(results.group_by("judge").len().iter_rows()) == dict.fromkeys((STRICT, DOUBTING, PANEL), AUDITS)
    panel = results.filter(judge=PANEL)
    agreed = results.filter(pl.col("judge") != PANEL).group_by("sample_id").agg(pl.col("target_found").n_unique() == 1)
    undecided = dict(panel.select("sample_id", "panel_undecided").iter_rows())
    vulnerable = {*panel.filter("is_vulnerable")["sample_id"]}
    assert {name: not same for name, same in agreed.iter_rows() if name in vulnerable} == {
        name: undecided[name] for name in vulnerable
    }
    assert any(undecided.values())
    assert {*bench.lake.frame(FINDINGS).collect()["judge"]} <= {STRICT, DOUBTING, PANEL}
    _, rows = newest_artifact(f"batch-{first}-{PATTERNS.replace('/', '-')}-1")
    tasks = [f"{PATTERNS} #1", *(f"judge {judge} on {PATTERNS} #1" for judge in (STRICT, DOUBTING))]
    counted = [(row["task run"], row["answered"] + row["ledger"]) for row in rows]
    assert counted == [(name, AUDITS) for name in tasks], "an audit that two judges see is one"

    metrics = bench.metrics(first)
    pair = metrics.filter(slice="judge_pair", slice_value=f"{DOUBTING}~{STRICT}", metric="percent_agreement")
    found = results.filter("is_vulnerable").pivot("judge", index="sample_id", values="target_found")
    assert pair["value"].to_list() == [pytest.approx((found[STRICT] == found[DOUBTING]).mean())]
    of_panel = dict(metrics.filter(judge=PANEL, slice="all").select("metric", "value").iter_rows())
    assert of_panel["sui"] is not None
    assert (of_panel["finding_precision"] is None) == (panel["total_findings"].sum() == 0)
    assert {"fleiss_kappa", "krippendorff_alpha", "unanimous_rate"} <= {*metrics.filter(judge=PANEL)["metric"]}

    def undecided_of_three() -> list[float]:
        values = bench.metrics(bench.run(STRICT, DOUBTING, LATE)).filter(metric="panel_undecided_rate", slice="all")
        return values["value"].drop_nulls().to_list()

    bench.server.rule(model="late", faults=[{"kind": "context_length", "times": 0}])
    assert undecided_of_three() == [sum(undecided.values()) / AUDITS]
    bench.server.rule(model="late", reply=strict)
    assert undecided_of_three() == [0.0]  # of three answers, two agree, though the third came later
    assert [bench.asked(name) for name in (STRICT, DOUBTING, LATE)] == [AUDITS, AUDITS, 2 * AUDITS]


def test_an_audit_that_the_model_refuses_is_wrong_and_not_missing(bench: Bench) -> None:
    bench.server.rule(model="subject", faults=[{"kind": "content_policy", "times": 0}])
    run = bench.run(STRICT, DOUBTING, models=[SUBJECT], accept_unreadable=True)
    rows = bench.lake.frame(RESULTS).collect()
    assert dict(rows.group_by("judge").len().iter_rows()) == dict.fromkeys((STRICT, DOUBTING, PANEL), AUDITS)
    assert {*rows["subject_error"]} == {"content_policy"}
    assert {seen.model for seen in bench.server.seen} == {"subject"}, "there is nothing to judge"
    items = bench.lake.frame(RUN_ITEMS).filter(pl.col("run_id") == run).collect()
    assert items["judge_hash"].null_count() == 0
    landings = [each.get("operationMetrics", {}) for each in bench.lake.open(RUN_ITEMS).history()]
    assert not [each for each in landings if each.get("num_target_rows_updated")], "an item lands once"
    values = bench.metrics(run).filter(judge=STRICT, slice="all")
    of = dict(values.select("metric", "value").iter_rows())
    assert (of["subject_error_rate"], of["accuracy"], of["target_detection_rate"]) == (1.0, 0.0, 0.0)
    assert of["judge_error_rate"] is None
    assert "missing" not in bench.warnings(run)
    state = bench.lake.frame(RUNS).filter(pl.col("run_id") == run).collect()["state"][0]
    assert state == "completed"


EMBEDDED = ("baseline/overlap-judge", "baseline/wording-judge")


def test_the_embedded_judges_are_a_panel_without_a_key_and_reports_say_what_trivial_models_get(bench: Bench) -> None:
    trivial = {"always vulnerable": "baseline/always-vulnerable", "always safe": "baseline/always-safe"}
    run_id = bench.run(*EMBEDDED, models=[PATTERNS, *trivial.values()])
    metrics = bench.metrics(run_id)
    panel = "panel:" + "+".join(EMBEDDED)
    assert {*EMBEDDED, panel} == {judge for judge in metrics["judge"].unique() if judge is not None}
    agreement = metrics.filter(
        pl.col("metric") == "percent_agreement", pl.col("slice") == "judge_pair", pl.col("model") == PATTERNS
    )
    assert agreement["n"].to_list() == [AUDITS / 2]
    assert "no agreement can be measured" not in bench.warnings(run_id)
    alone = bench.run(EMBEDDED[0], prompt_types=["knowledge", "direct"])
    assert "no agreement can be measured (--judges a,b)" in bench.warnings(alone)

    got = dict(metrics.filter(metric="sui", slice="all", judge=EMBEDDED[0]).select("model", "value").iter_rows())
    without = build_report(bench.lake, alone).trivial
    assert without == {name: pytest.approx(got[model]) for name, model in trivial.items()}
    assert without["always vulnerable"] > without["always safe"] > 0


def test_a_fallback_judges_where_a_judges_provider_cannot_and_the_row_says_so(
    tmp_path: Path, model_server: ModelServer
) -> None:
    first, second = "hosted_vllm/first", "hosted_vllm/second"
    bench = Bench(tmp_path, model_server, (first, second))
    text = bench.configuration.read_text().replace("\n", f'\nfallbacks = ["{second}"]\n', 1)
    bench.configuration.write_text(f"{text}[providers.hosted_vllm]\nattempts = 1\n")
    model_server.rule(reply="Good work.\n\n60")
    model_server.rule(contains="\n60", reply="None.")
    for model, word in (("first", "certificate"), ("first", "worker-12"), ("second", "worker-12")):
        model_server.rule(model=model, contains=word, reply=None, faults=({"kind": "server_error", "times": 0},))

    def run() -> tuple[str, pl.DataFrame, int]:
        parameters = {"lake": bench.lake.uri, "configuration_file": str(bench.configuration), "max_missing": 0.2}
        run_id = run_id_of(
            str(evaluate("session_review", judges=[first], return_state=True, **parameters).state_details.flow_run_id)
        )
        asked = bench.lake.frame(RUN_ITEMS).filter(run_id=run_id).select("judge", "judge_hash", "prompt_hash").collect()
        rows = bench.lake.frame(SCORES).join(asked.lazy(), on=["judge", "prompt_hash"], how="semi").collect()
        return run_id, rows.select("judge", "fallback_for", "total_score"), asked.height

    run_id, rows, items = run()
    counts = rows.group_by("judge", "fallback_for", "total_score").len().sort("len").rows()
    assert {row[:3] for row in counts} == {(first, None, 60), (second, first, 60)}
    (of_first,) = [row for row in build_report(bench.lake, run_id).missing if row.judge == first]
    assert (of_first.items, of_first.kinds) == (counts[0][3] + counts[1][3] + 1, {STOOD_IN: 1, "server": 1})
    assert items == of_first.items + counts[0][3], "an item is of the judge asked, and of who judged it"
    (row,) = bench.lake.frame(RUNS).filter(run_id=run_id).collect().to_dicts()
    assert (row["state"], row["judges"]) == ("completed", [first, second])
    assert (
        f"{second} judges {counts[0][3]} items in place of {first}, whose provider could not answer" in row["message"]
    )
    paid, covered = bench.asked(second), sorted(map(str, coverage_of(bench.lake, row)))
    rescore(bench.lake, run_id, read_configuration(bench.configuration))
    assert sorted(map(str, coverage_of(bench.lake, row))) == covered
    assert run()[1].equals(rows)
    assert bench.asked(second) == paid + 1, "the ledger answers for the fallback, but where that failed"


# Judges that contradict themselves, over real HTTP: told once what contradicts what, then believed or refused.

JUDGE = "hosted_vllm/contradictory"
FOUND = [
    f"starter/pair_{pair}/vulnerable"
    for pair in ("01", "02", "07", "09", "10", "103", "14", "21", "32", "44", "59", "65")
]
"""Samples of which the rule-based subject's first finding is the target."""


@pytest.fixture
def lone(tmp_path: Path, model_server: ModelServer) -> Bench:
    return Bench(tmp_path, model_server, names=(JUDGE,))


def judged(bench: Bench, *, repairs: bool) -> tuple[str, ContradictoryJudge]:
    """A run over as many audits as there are contradictions, and its judge."""
    judge = ContradictoryJudge(repairs=repairs)
    bench.server.rule(model="contradictory", reply=judge)
    run = bench.run(JUDGE, samples=FOUND, first=None)
    assert {*judge.told} == {*CONTRADICTIONS}
    return run, judge


def test_each_contradiction_is_told_once_and_put_right(lone: Bench) -> None:
    run, judge = judged(lone, repairs=True)
    for name, (_, words) in CONTRADICTIONS.items():
        first, repair = judge.told[name]
        assert "cannot be used" not in first
        assert "cannot be used" in repair
        assert words in repair, name
    rows = lone.lake.frame(RESULTS).collect()
    assert rows.height == len(FOUND)
    assert rows.select("repaired", "target_found", "contradictions").unique().rows() == [(True, True, None)]
    assert lone.lake.frame(QUARANTINE).collect().is_empty()
    assert f"{JUDGE}: 12 of 12 judgements took a second attempt" in lone.warnings(run)


def test_who_contradicts_itself_again_is_in_quarantine_and_counted(lone: Bench) -> None:
    lone.lake.ensure(RESULTS)  # to measure from
    run, judge = judged(lone, repairs=False)
    assert {len(told) for told in judge.told.values()} == {2}, "one repair turn, and no more"
    assert lone.lake.frame(RESULTS).filter(judge=JUDGE).collect().is_empty()
    assert lone.lake.frame(FINDINGS).filter(judge=JUDGE).collect().is_empty()
    refused = lone.lake.frame(QUARANTINE).collect()
    assert refused.height == len(CONTRADICTIONS)
    for row in refused.iter_rows(named=True):
        words = json.loads(row["payload"])["contradictions"]
        assert ("asked_judgement_agrees_with_itself" in row["rules"]) == (words is not None), row["rules"]
        assert row["rules"]
    run_row = lone.lake.frame(RUNS).filter(pl.col("run_id") == run).collect().row(0, named=True)
    assert (run_row["state"], run_row["rows_quarantined"]) == ("incomplete", len(CONTRADICTIONS))
    assert "12 rows are in quarantine" in run_row["message"]
    assert "12 of 12 items are missing (12 in quarantine)" in lone.warnings(run)


def quoting(messages: Messages) -> str:
    """What the overlap judge says, behind another judgement that it quotes; of some audits, with a field twice."""
    said = strict(messages)
    if "Vault" in str(messages[1]["content"]):
        return said[:-1] + f', "findings": {json.dumps(json.loads(said)["findings"])}}}'
    return f"The audit says: {json.dumps({**json.loads(said), 'findings': []})}\nI say: {said}"


def test_whose_judgement_cannot_be_told_from_a_quoted_one_is_asked_once_more_then_missing(lone: Bench) -> None:
    lone.lake.ensure(RESULTS)  # to measure from
    lone.server.rule(model="contradictory", reply=quoting)
    run = lone.run(JUDGE, samples=FOUND, first=None)
    assert lone.asked(JUDGE) == 2 * len(FOUND), "one repair turn, and no more"
    assert lone.lake.frame(RESULTS).filter(judge=JUDGE).collect().is_empty()
    refused = lone.lake.frame(QUARANTINE).collect()
    assert refused["rules"].to_list() == [["asked_judgement_agrees_with_itself"]] * len(FOUND)
    why = {json.loads(payload)["contradictions"] for payload in refused["payload"]}
    assert any("2 judgements that differ" in words for words in why), why
    assert all(json.loads(payload)["judge_error"] is None for payload in refused["payload"])
    covered = lone.lake.frame(RUN_COVERAGE).filter(run_id=run, judge=JUDGE).collect()
    assert covered["missing"].sum() == covered["asked"].sum() == len(FOUND)
    run_row = lone.lake.frame(RUNS).filter(run_id=run).collect().row(0, named=True)
    assert (run_row["state"], run_row["rows_quarantined"]) == ("incomplete", len(FOUND))


# The flow `calibrate`: judges beside what is known; one that cannot be asked is refused before all.

JUDGES = ["baseline/overlap-judge", "baseline/wording-judge"]


def test_each_judge_has_a_row_for_each_decision_and_a_rerun_asks_nothing(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    rows = calibrate("solidity_audit", JUDGES, lake=lake.uri)
    assert {row["judge"] for row in rows} == {*JUDGES}
    decisions = {judge: {row["decision"] for row in rows if row["judge"] == judge} for judge in JUDGES}
    assert decisions[JUDGES[0]] == decisions[JUDGES[1]] > {"verdict", "target found"}
    description, shown = newest_artifact("judge-calibration")
    assert description == "solidity_audit: accuracy of judges by decision"
    assert [row["decision"] for row in shown] == [row["decision"] for row in rows]
    asked = lake.frame(CALLS).collect().height
    assert asked > 0
    assert calibrate("solidity_audit", JUDGES[:1], lake=lake.uri) == rows[: len(decisions[JUDGES[0]])]
    assert lake.frame(CALLS).collect().height == asked


@pytest.mark.parametrize(
    ("suite", "judge", "error", "named"),
    [
        ("solidity_audit", "nowhere/judge", ProviderError, "nowhere/judge"),
        ("solidity_audit", "baseline/none", ProviderError, "baseline/none"),
        ("command_guard", JUDGES[0], UsageError, "choose one of solidity_audit"),
    ],
)
def test_who_cannot_be_measured_is_named_before_anything_is_asked(
    tmp_path: Path, suite: str, judge: str, error: type[Exception], named: str
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    with pytest.raises(error, match=named):
        calibrate(suite, [judge], lake=lake.uri)
    assert lake.frame(CALLS).collect().is_empty()
