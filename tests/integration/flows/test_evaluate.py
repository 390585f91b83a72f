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
from evalake.core.configuration import Configuration, read_configuration
from evalake.core.errors import SourceError, UsageError
from evalake.reports.page import render
from evalake.server.viewer.run_list import WantedRuns, run_page
from evalake.storage.ledger import Key, LedgerIndex
from evalake.storage.sql.query import query
from evalake.suites.command_guard.contract import RESULTS
from evalake.suites.registry import all_contracts
from evalake.tasks import plan, publish
from evalake.tasks.extract import next_replicate
from evalake.tasks.report import build_report
from evalake.tasks.rescore import rescore
from tests.integration.flows.workplace import LIMITS, MODEL, OTHER, Workplace


def test_every_sample_is_asked_once_and_lands_once(work: Workplace) -> None:
    run = work.run(work.dataset(35))
    assert (run["state"], run["flow_state"]) == ("completed", "Completed")
    assert work.asked() == run["calls_made"] == 35
    results = work.rows(RESULTS)
    assert results["sample_id"].n_unique() == results.height == run["rows_landed"] == 35
    assert results["verdict"].unique().to_list() == ["BLOCK"]
    assert work.rows(SAMPLES).height == work.rows(RUN_ITEMS).height == work.rows(CALLS).height == 35
    rate = work.rows(METRIC_SNAPSHOTS).filter(metric="malicious_detection_rate", slice="all").row(0, named=True)
    assert (rate["value"], rate["n"], rate["reliable"]) == (1.0, 35, True)


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


def test_what_was_expected_of_a_run_is_kept_with_it(work: Workplace) -> None:
    run = work.run(work.dataset(10))
    expected = json.loads(run["parameters"])["estimate"]
    assert expected["calls"] == {"to_make": 10, "in_ledger": 0}
    assert expected["usd_low"] <= expected["usd_high"]
    again = json.loads(work.run(work.dataset(10))["parameters"])["estimate"]
    assert again["calls"] == {"to_make": 0, "in_ledger": 10}


def test_the_cost_of_a_run_is_that_of_its_tokens(work: Workplace) -> None:
    run = work.run(work.dataset(10))
    assert run["input_tokens"] == 200
    assert run["cost_usd"] == pytest.approx(10 * (20 * 1.0 + 5 * 2.0) / 1e6)
    again = work.run(work.dataset(10))
    assert again["cost_usd"] == 0.0
    assert again["cost_usd_avoided"] == pytest.approx(run["cost_usd"])


def test_what_was_asked_is_asked_anew_under_the_next_replicate(work: Workplace) -> None:
    before = work.run(work.dataset(5))
    number = next_replicate(work.lake, "command_guard", before["models"])
    assert number == 1
    assert next_replicate(work.lake, "command_guard", ["another"]) == 0
    again = work.run(work.dataset(5), first_replicate=number)
    assert (work.asked(), again["calls_made"], again["state"]) == (10, 5, "completed")
    assert sorted(work.rows(RESULTS)["replicate"]) == [0] * 5 + [1] * 5
    assert work.run(work.dataset(5), first_replicate=number)["calls_made"] == 0, "going on asks only what is missing"


def test_a_run_is_found_by_its_tags_and_keeps_its_note(work: Workplace) -> None:
    work.run(work.dataset(2))
    run = work.run(work.dataset(2), tags=["nightly", "a b"], note="after the update")
    for tag in ("nightly", "a b"):
        (found,) = run_page(work.lake, WantedRuns(tag=tag)).runs
        assert (found.run_id, found.tags, found.note) == (run["run_id"], ["nightly", "a b"], "after the update")
    assert run_page(work.lake, WantedRuns(tag="night")).total == 0
    assert [each.tags for each in run_page(work.lake, WantedRuns()).runs] == [["nightly", "a b"], []]


def test_a_mistake_shows_how_its_reply_began(work: Workplace) -> None:
    work.server.rule(reply="<b>I would rather not say</b> " + "x" * 400)
    run = work.run(work.dataset(4))
    built = build_report(work.lake, run["run_id"])
    ((_, wrong),) = built.mistakes()
    assert wrong["reply_start"].to_list() == ["<b>I would rather not say</b> " + "x" * 270] * 4
    page = render(built)
    assert "&lt;b&gt;I would rather not say&lt;/b&gt; " + "x" * 270 + "</td>" in page
    work.server.rule(reply='{"action": "allow", "reason": "fine"}')
    run = work.run(work.dataset(4), replicates=2)
    ((_, wrong),) = build_report(work.lake, run["run_id"]).mistakes()
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


def test_an_unknown_price_makes_the_cost_unknown(work: Workplace) -> None:
    work.configure(price=False)
    run = work.run(work.dataset(3))
    assert run["cost_usd"] is None
    assert run["state"] == "completed"


def test_replies_are_kept_by_the_lake_alone(work: Workplace) -> None:
    work.server.rule(reply='{"action": "BLOCK", "reason": "a reply of hidden words", "confidence": 0.9}')
    work.run(work.dataset(12))
    results = PREFECT_LOCAL_STORAGE_PATH.value()
    kept = [path.read_bytes() for path in results.rglob("*") if path.is_file()]
    assert kept  # the batches' results are there
    assert not any(b"hidden words" in content for content in kept)


def test_a_rerun_asks_nothing_and_adds_nothing(work: Workplace) -> None:
    dataset = work.dataset(30)
    work.run(dataset)
    again = work.run(dataset)
    assert work.asked() == 30
    assert (again["calls_made"], again["calls_from_ledger"]) == (0, 30)
    assert (again["rows_landed"], again["rows_already_present"]) == (0, 30)
    rows = f"select count(*) as n from command_guard_run_results where run_id = '{again['run_id']}'"
    assert query(work.lake, all_contracts(), rows)["n"].item() == 30
    assert work.rows(RESULTS).height == work.rows(CALLS).height == 30


def test_who_was_asked_is_among_the_metrics(work: Workplace) -> None:
    first = work.run(work.dataset(30))
    second = work.run(work.dataset(40), models=[MODEL, OTHER])
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


def test_a_longer_dataset_and_a_further_model_pay_only_for_what_is_new(work: Workplace) -> None:
    work.run(work.dataset(20))
    longer = work.run(work.dataset(30))
    assert (longer["calls_made"], longer["calls_from_ledger"]) == (10, 20)
    both = work.run(work.dataset(30), models=[MODEL, OTHER])
    assert (both["calls_made"], both["calls_from_ledger"]) == (30, 30)
    assert work.asked() == 60


def test_replicates_are_calls_of_their_own(work: Workplace) -> None:
    run = work.run(work.dataset(5), replicates=3)
    assert work.asked() == run["calls_made"] == run["rows_landed"] == 15
    assert sorted(work.rows(CALLS)["replicate"].unique()) == [0, 1, 2]
    assert work.run(work.dataset(5), replicates=3)["calls_made"] == 0


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


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [("no", "FORMAT_ERROR"), (None, "TIMEOUT_ERROR"), ("", "TIMEOUT_ERROR"), ('{"action": "MAYBE"}', "FORMAT_ERROR")],
)
def test_a_broken_reply_is_an_error_verdict_not_an_exception(work: Workplace, reply: str | None, verdict: str) -> None:
    work.server.rule(reply=reply)
    run = work.run(work.dataset(3), accept_unreadable=True)
    assert run["state"] == "completed"
    assert work.rows(RESULTS)["verdict"].unique().to_list() == [verdict]


def test_what_timed_out_counts_as_an_error_until_a_reply_takes_its_place(work: Workplace) -> None:
    work.configure(
        limits=LIMITS.replace("timeout_seconds = 60", "timeout_seconds = 2").replace("attempts = 2", "attempts = 1")
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


def test_an_item_that_failed_is_asked_again_by_the_next_run_and_only_it(work: Workplace) -> None:
    work.server.rule(contains="00007", faults=({"kind": "server_error", "times": 2},), reply='{"action": "BLOCK"}')
    first = work.run(work.dataset(20))
    assert (first["state"], first["calls_made"], first["calls_failed"]) == ("completed", 19, 1)
    assert "lacks 1 of 20 (5.0 %) items: 1 server (5.0 % may be missing)" in first["message"]
    second = work.run(work.dataset(20))
    assert (second["state"], second["calls_made"], second["calls_from_ledger"]) == ("completed", 1, 19)
    assert work.asked() == 19 + 2 + 1


def test_malformed_lines_are_quarantined_and_the_run_says_so(work: Workplace) -> None:
    source = work.dataset(5)
    with Path(source).open("a") as file:
        file.write('{"sample_id": "broken", "command": \n{"sample_id": "no-label", "command": "ls"}\n')
    run = work.run(source)
    assert (run["state"], run["samples"], run["rows_quarantined"]) == ("incomplete", 5, 2)
    assert "2 rows are in quarantine" in run["message"]
    assert work.rows(QUARANTINE)["table_name"].to_list() == ["samples", "samples"]


def test_rule_results_are_kept(work: Workplace) -> None:
    work.run(work.dataset(5))
    checks = work.rows(CONTRACT_CHECKS)
    assert {"samples", "command_guard_results"} <= set(checks["table_name"])
    assert checks["passed"].all()


def test_the_same_inputs_give_the_same_snapshot(work: Workplace) -> None:
    from evalake.tasks.measure import measure
    from evalake.tasks.runtime.context import RunContext

    run = work.run(work.dataset(8))
    before = work.rows(METRIC_SNAPSHOTS)
    context = RunContext(run["run_id"], "command_guard", work.lake, Configuration())
    assert measure(context) == run["snapshot_id"]
    assert work.rows(METRIC_SNAPSHOTS).sort(pl.all()).equals(before.sort(pl.all()))


@pytest.mark.parametrize(
    ("parameters", "error", "named"),
    [
        ({"models": ["nowhere/model"]}, "ProviderError", "nowhere/model"),
        ({"models": ["openai/gpt-4o-mini"]}, "MissingKeyError", "OPENAI_API_KEY"),
        ({"models": ["baseline/none"]}, "ProviderError", "baseline/none"),
        ({"prompt_types": ["sung"]}, "UsageError", "sung"),
        ({"judges": ["a/b"]}, "UsageError", "--judges"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_written(
    work: Workplace, monkeypatch: pytest.MonkeyPatch, parameters: dict[str, list[str]], error: str, named: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(Exception, match=named) as refusal:
        work.run(work.dataset(2), **parameters)
    assert type(refusal.value).__name__ == error
    assert work.rows(RUNS).is_empty()
    assert work.asked() == 0


def test_an_empty_or_missing_source_is_named(work: Workplace) -> None:
    empty = work.folder / "empty.jsonl"
    empty.write_text("")
    for source in (str(empty), str(work.folder / "missing.jsonl")):
        with pytest.raises(SourceError, match=source.rsplit("/", 1)[1].split(".")[0]):
            work.run(source)


def test_an_unknown_suite_is_named(work: Workplace) -> None:
    from evalake.flows.evaluate import evaluate

    with pytest.raises(UsageError, match="poetry"):
        evaluate(suite="poetry", lake=work.lake.uri)


def test_rescoring_a_run_calls_nothing_and_finds_every_item(work: Workplace) -> None:
    run = work.run(work.dataset(12), models=[MODEL, OTHER])
    done = rescore(work.lake, run["run_id"], read_configuration(work.configuration))
    assert (done.snapshot_id, done.items, done.unanswered) == (run["snapshot_id"], 24, 0)
    assert done.published.landed.already_present == 24
    assert work.asked() == 24
