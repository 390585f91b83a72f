"""The evaluate flow, with real HTTP to a real model server: what is paid for, what lands, what a rerun asks."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH

from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import (
    CALL_FAILURES,
    CALLS,
    CONTRACT_CHECKS,
    METRIC_SNAPSHOTS,
    QUARANTINE,
    RUN_ITEMS,
    RUNS,
    SAMPLES,
)
from evalake.core.configuration import Configuration
from evalake.core.errors import UsageError
from evalake.reports.page import render
from evalake.server.viewer.run_list import WantedRuns, run_page
from evalake.storage.ledger import Key, LedgerIndex
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import all_contracts
from evalake.tasks import plan, publish
from evalake.tasks.extract import next_replicate
from evalake.tasks.measure import measure
from evalake.tasks.report import build_report
from evalake.tasks.runtime.context import RunContext
from tests.integration.flows.workplace import LIMITS, MODEL, OTHER, Workplace
from tests.integration.storage.sql.engine import answered


def test_every_sample_is_asked_once_and_lands_once_and_a_rerun_asks_nothing(work: Workplace) -> None:
    work.server.rule(reply='{"action": "BLOCK", "reason": "a reply of hidden words", "confidence": 0.9}')
    data = work.dataset(35)
    run = work.run(data)
    assert (run["state"], run["flow_state"]) == ("completed", "Completed")
    assert work.asked() == run["calls_made"] == 35
    results = work.rows(RESULTS)
    assert results["sample_id"].n_unique() == results.height == run["rows_landed"] == 35
    assert results["verdict"].unique().to_list() == ["BLOCK"]
    assert work.rows(SAMPLES).height == work.rows(RUN_ITEMS).height == work.rows(CALLS).height == 35
    metrics = work.rows(METRIC_SNAPSHOTS)
    rate = metrics.filter(metric="malicious_detection_rate", slice="all").row(0, named=True)
    assert (rate["value"], rate["n"], rate["reliable"]) == (1.0, 35, True)
    checks = work.rows(CONTRACT_CHECKS)
    assert {"samples", "command_guard_results"} <= set(checks["table_name"])
    assert checks["passed"].all()
    kept = [path.read_bytes() for path in PREFECT_LOCAL_STORAGE_PATH.value().rglob("*") if path.is_file()]
    assert kept, "the batches' results are there"
    assert not any(b"hidden words" in content for content in kept), "the lake alone keeps replies"
    context = RunContext(run["run_id"], "command_guard", work.lake, Configuration())
    assert measure(context) == run["snapshot_id"], "the same inputs give the same snapshot"
    assert work.rows(METRIC_SNAPSHOTS).sort(pl.all()).equals(metrics.sort(pl.all()))

    again = work.run(data, tags=["nightly", "a b"], note="after the update")
    assert work.asked() == 35
    assert (again["calls_made"], again["calls_from_ledger"]) == (0, 35)
    assert (again["rows_landed"], again["rows_already_present"]) == (0, 35)
    rows = f"select count(*) as n from command_guard_run_results where run_id = '{again['run_id']}'"
    assert answered(work.lake, all_contracts(), rows)["n"].item() == 35
    assert work.rows(RESULTS).height == work.rows(CALLS).height == 35
    assert run["input_tokens"] == 700
    assert run["cost_usd"] == pytest.approx(35 * (20 * 1.0 + 5 * 2.0) / 1e6), "that of its tokens"
    assert (again["cost_usd"], again["cost_usd_avoided"]) == (0.0, pytest.approx(run["cost_usd"]))
    expected, expected_again = (json.loads(each["parameters"])["estimate"] for each in (run, again))
    assert expected["calls"] == {"to_make": 35, "in_ledger": 0}
    assert expected["usd_low"] <= expected["usd_high"]
    assert expected_again["calls"] == {"to_make": 0, "in_ledger": 35}
    for tag in ("nightly", "a b"):
        (found,) = run_page(work.lake, WantedRuns(tag=tag)).runs
        assert (found.run_id, found.tags, found.note) == (again["run_id"], ["nightly", "a b"], "after the update")
    assert run_page(work.lake, WantedRuns(tag="night")).total == 0
    assert [each.tags for each in run_page(work.lake, WantedRuns()).runs] == [["nightly", "a b"], []]


class Counts:
    """How often a run looks into the ledger and shapes rows, counted at the doors that it goes through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looked_up: Counter[Key] = Counter()
        self.read_back: list[Key] = []
        self.conformed: Counter[str] = Counter()
        fetch = LedgerIndex.fetch

        def counted_fetch(index: LedgerIndex, keys: Sequence[Key], run_id: str | None = None) -> dict[Key, Any]:
            found = fetch(index, keys, run_id)
            self.looked_up.update(keys)
            self.read_back += found
            return found

        def counted_conform(rows: Any, contract: Contract, *shared: Any) -> pl.DataFrame:
            self.conformed[contract.table] += len(rows)
            return conform(rows, contract, *shared)

        monkeypatch.setattr(LedgerIndex, "fetch", counted_fetch)
        for room in (publish, plan):
            monkeypatch.setattr(room, "conform", counted_conform)


def test_a_new_call_is_looked_up_once_and_its_row_goes_one_way(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.configure(batch_size=10)
    data = work.dataset(35)
    work.run(work.dataset(1, "first", first=1000))  # which makes the tables
    before = {contract: work.lake.open(contract).version() for contract in (RUN_ITEMS, RESULTS)}
    counts = Counts(monkeypatch)
    run = work.run(data)
    assert run["calls_made"] == 35
    # By the estimate before the run, and by its plan: not again before the call, nor for the reply.
    assert set(counts.looked_up.values()) == {2}
    assert counts.read_back == []
    assert counts.conformed[RESULTS.table] == counts.conformed[RUN_ITEMS.table] == 35
    assert {contract: work.lake.open(contract).version() - version for contract, version in before.items()} == {
        RUN_ITEMS: 1,
        RESULTS: 1,
    }
    again = work.run(data)
    assert (again["calls_made"], again["rows_landed"]) == (0, 0)
    assert set(counts.looked_up.values()) == {4}


def test_replicates_are_calls_of_their_own_and_what_was_asked_is_asked_anew_under_the_next(work: Workplace) -> None:
    before = work.run(work.dataset(5), replicates=2)
    assert work.asked() == before["calls_made"] == before["rows_landed"] == 10
    number = next_replicate(work.lake, "command_guard", before["models"])
    assert number == 2
    assert next_replicate(work.lake, "command_guard", ["another"]) == 0
    again = work.run(work.dataset(5), first_replicate=number)
    assert (work.asked(), again["calls_made"], again["state"]) == (15, 5, "completed")
    assert sorted(work.rows(RESULTS)["replicate"]) == [0] * 5 + [1] * 5 + [2] * 5
    assert work.run(work.dataset(5), first_replicate=number)["calls_made"] == 0, "going on asks only what is missing"


def test_a_mistake_shows_how_its_reply_began(work: Workplace) -> None:
    work.server.rule(reply="<b>I would rather not say</b> " + "x" * 400)
    run = work.run(work.dataset(4))
    built = build_report(work.lake, run["run_id"])
    ((_, _, wrong),) = built.mistakes()
    assert wrong["reply_start"].to_list() == ["<b>I would rather not say</b> " + "x" * 270] * 4
    page = render(built)
    assert "&lt;b&gt;I would rather not say&lt;/b&gt; " + "x" * 270 + "</td>" in page
    work.server.rule(reply='{"action": "allow", "reason": "fine"}')
    run = work.run(work.dataset(4), replicates=2)
    ((_, _, wrong),) = build_report(work.lake, run["run_id"]).mistakes()
    assert dict(wrong.select("replicate", "reply_start").iter_rows())[1] == '{"action": "allow", "reason": "fine"}'


def test_a_prompt_of_ones_own_is_asked_beside_the_suites_and_its_text_is_part_of_what_was_asked(
    work: Workplace,
) -> None:
    (work.folder / "guard.md").write_text("Block what I would not like.")
    (work.folder / "examples.jsonl").write_text('{"input": "ls", "reply": "allow"}')
    section = "[suites.command_guard.prompts.mine]\n"
    with work.configuration.open("a") as file:
        file.write(f'{section}system = "guard.md"\nexamples = "examples.jsonl"\n')
    run = work.run(work.dataset(5), prompt_types=["direct", "mine"])
    assert work.asked() == 10
    rates = work.rows(METRIC_SNAPSHOTS).filter(metric="malicious_detection_rate", slice="prompt_type")
    assert dict(rates.select("slice_value", "n").iter_rows()) == {"direct": 5, "mine": 5}
    assert work.run(work.dataset(5), prompt_types=["direct", "mine"])["calls_made"] == 0
    (work.folder / "guard.md").write_text("Block it all.")
    changed = work.run(work.dataset(5), prompt_types=["direct", "mine"])
    assert changed["calls_made"] == 5, "only what is asked in other words"
    direct, mine = json.loads(run["parameters"])["prompts"]
    assert (direct, mine[:5]) == ("direct", "mine@")
    assert json.loads(changed["parameters"])["prompts"] != [direct, mine], "no line of a metric joins the two"


def test_a_longer_dataset_and_a_further_model_pay_only_for_what_is_new_by_the_metrics_too(work: Workplace) -> None:
    first = work.run(work.dataset(30))
    second = work.run(work.dataset(40), models=[MODEL, OTHER])
    assert (second["calls_made"], second["calls_from_ledger"], work.asked()) == (50, 30, 80)
    usage = ("calls_made", "calls_from_ledger", "cost_usd_avoided")
    rows = work.rows(METRIC_SNAPSHOTS).filter(pl.col("metric").is_in(usage))

    def of(run: dict[str, Any], model: str) -> dict[str, float]:
        kept = rows.filter(snapshot_id=run["snapshot_id"], model=model, slice="all")
        assert kept["n"].unique().to_list() == [run["samples"]]
        return dict(kept.select("metric", "value").iter_rows())

    assert of(first, MODEL) == {"calls_made": 30, "calls_from_ledger": 0, "cost_usd_avoided": 0}
    avoided = {"cost_usd_avoided": pytest.approx(first["cost_usd"])}
    assert of(second, MODEL) == {"calls_made": 10, "calls_from_ledger": 30} | avoided
    assert of(second, OTHER) == {"calls_made": 40, "calls_from_ledger": 0, "cost_usd_avoided": 0}


def test_a_command_that_stands_in_two_datasets_is_asked_once_and_measured_in_both(work: Workplace) -> None:
    run = work.run(work.dataset(12, "first"), work.dataset(12, "second"))
    assert work.asked() == 12
    assert run["rows_landed"] == 24
    by_dataset = work.rows(METRIC_SNAPSHOTS).filter(metric="malicious_detection_rate", slice="dataset")
    assert dict(by_dataset.select("slice_value", "n").rows()) == {"first": 12, "second": 12}


def test_a_model_without_permission_is_stopped_and_the_others_go_on(work: Workplace) -> None:
    work.server.rule(model="other", faults=({"kind": "unauthorized", "times": 0},))
    run = work.run(work.dataset(40), models=[MODEL, OTHER])
    assert (run["state"], run["flow_state"]) == ("incomplete", "Failed")
    assert "40 items have no answer" in run["message"]
    assert work.rows(RESULTS)["model"].unique().to_list() == [MODEL]
    assert len(work.server.requests(model="other")) <= 8  # what was in flight when the first refusal came
    failures = work.rows(CALL_FAILURES)
    assert failures.height == 40
    assert set(failures["kind"]) <= {"authentication", "model_stopped"}


def test_faults_that_pass_are_retried_and_leave_no_trace_in_the_results(work: Workplace) -> None:
    work.server.rule(reply='{"action": "ALLOW"}', faults=({"kind": "server_error", "times": 1},))
    run = work.run(work.dataset(15))
    assert (run["state"], run["calls_made"], run["calls_failed"]) == ("completed", 15, 0)
    assert work.asked() == 30
    assert work.rows(CALLS)["attempts"].unique().to_list() == [2]


def test_a_broken_reply_is_an_error_verdict_not_an_exception(work: Workplace) -> None:
    broken = {"no": "FORMAT_ERROR", None: "TIMEOUT_ERROR", "": "TIMEOUT_ERROR", '{"action": "MAYBE"}': "FORMAT_ERROR"}
    for number, reply in enumerate(broken):
        work.server.rule(contains=f"{number:05d}", reply=reply)
    assert work.run(work.dataset(4), accept_unreadable=True)["state"] == "completed"
    assert work.rows(RESULTS).sort("sample_id")["verdict"].to_list() == [*broken.values()]


def test_what_timed_out_counts_as_an_error_until_a_reply_takes_its_place(work: Workplace) -> None:
    work.configure(
        limits=LIMITS.replace("timeout_seconds = 600", "timeout_seconds = 10").replace("attempts = 2", "attempts = 1")
    )
    work.server.rule(contains="00001", faults=({"kind": "hang", "times": 1},), reply='{"action": "BLOCK"}')
    first = work.run(work.dataset(4))
    assert (first["state"], first["calls_failed"]) == ("incomplete", 1)
    assert "lacks 1 of 4 (25.0 %) items: 1 timeout" in first["message"]
    assert sorted(work.rows(RESULTS)["verdict"]) == ["BLOCK", "BLOCK", "BLOCK", "TIMEOUT_ERROR"]
    second = work.run(work.dataset(4))
    assert (second["calls_made"], second["rows_landed"]) == (1, 1)
    assert sorted(work.rows(RESULTS)["verdict"]) == ["BLOCK"] * 4
    by_run = {run["run_id"]: run["snapshot_id"] for run in (first, second)}
    values = work.rows(METRIC_SNAPSHOTS).filter(metric="malicious_detection_rate", slice="all")
    rates = dict(values.select("snapshot_id", "value").rows())
    assert [rates[by_run[run["run_id"]]] for run in (first, second)] == [0.75, 1.0]


def test_malformed_lines_are_quarantined_and_the_run_says_so(work: Workplace) -> None:
    source = work.dataset(5)
    with Path(source).open("a") as file:
        file.write('{"sample_id": "broken", "command": \n{"sample_id": "no-label", "command": "ls"}\n')
    run = work.run(source)
    assert (run["state"], run["samples"], run["rows_quarantined"]) == ("incomplete", 5, 2)
    assert "2 rows are in quarantine" in run["message"]
    assert work.rows(QUARANTINE)["table_name"].to_list() == ["samples", "samples"]


def test_what_is_wrong_is_found_before_anything_is_written(work: Workplace) -> None:
    with pytest.raises(UsageError, match="--judges"):
        work.run(work.dataset(2), judges=["a/b"])
    assert work.rows(RUNS).is_empty()
    assert work.asked() == 0
