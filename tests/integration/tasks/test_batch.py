"""A batch: conversations, failures, and what is missing afterwards."""

import asyncio
import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect.states import exception_to_failed_state

from evalake.admin.import_results import import_recorded
from evalake.admin.recorded_files import UNREADABLE
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALL_FAILURES, CALLS, QUARANTINE, RUN_COVERAGE, RUN_ITEMS, SNAPSHOTS
from evalake.core.configuration import IMPORT, PROVIDER, Configuration, read_configuration
from evalake.core.errors import LakeError
from evalake.models.request import Failure
from evalake.reports.coverage import NOT_ASKED, Coverage, Tolerance
from evalake.reports.files import as_data
from evalake.sdk import Dataset, Exchange, Item, Sample, Skipped
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import LedgerIndex, append, index_since
from evalake.suites.registry import suite
from evalake.tasks.batch import Batch, BatchIncompleteError, call_batch, require_endpoints, require_ledger
from evalake.tasks.converse import Conversation, next_request, replay_from_ledger
from evalake.tasks.coverage import Source, coverage_of, tolerance_of
from evalake.tasks.failures import FailureCounter
from evalake.tasks.measure import measure
from evalake.tasks.report import build_report
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import RunOverError
from evalake.tasks.runtime.runs import amended, run_row
from tests.integration.cli.command import recorded
from tests.integration.storage.rows import call, key_of

# A batch knows the ledger it was planned for, and is tried again only where that can help.


def test_a_lake_in_place_of_a_deleted_one_is_known_for_what_it_is(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for number in (1, 2):
        ledger.append(lake, [call(number)])
        table = lake.open(CALLS)
        ledger_id = str(table.metadata().id)
        require_ledger(lake, ledger_id)
        index = index_since(lake, ledger_id, table.version())
        assert index.fetch([key_of(call(number))])  # each at the same version
        shutil.rmtree(lake.uri)
    with pytest.raises(LakeError, match="does not find the lake of the run"):
        require_ledger(lake, "the id of none")


def test_a_process_that_would_ask_elsewhere_than_planned_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    context = RunContext("run", "command_guard", Lake(str(tmp_path / "lake")), Configuration())
    item = Item(Sample("command_guard", "d", "s", "ls"), "openai/m")
    planned = Conversation(item, next_model="openai/m", next_endpoint=PROVIDER)
    require_endpoints(context, [planned])
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.example")
    with pytest.raises(LakeError, match=r"calls openai/m at the endpoint http://elsewhere\.example, but the run was"):
        require_endpoints(context, [planned])


@pytest.mark.parametrize(
    ("error", "is_tried_again"),
    [
        (OSError("a worker's machine failed"), True),
        (BatchIncompleteError("1 of 2 calls were given up on", {}), False),  # they had their own retries
        (RunOverError("the run is over"), False),
        (LakeError("no space left on the disk"), False),  # what is answered could not be kept: paid for nothing
    ],
)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["in this process", "in another one"])
def test_a_batch_is_tried_again_where_its_machine_failed(
    error: Exception, is_tried_again: bool, elsewhere: bool
) -> None:
    state = asyncio.run(exception_to_failed_state(error))
    if elsewhere:  # which tells no more of it than its words
        state.data = None
    assert call_batch.retry_condition_fn is not None
    assert call_batch.retry_condition_fn(call_batch, None, state) == is_tried_again  # type: ignore[arg-type]


# Conversations go on from the ledger: what it holds is not asked, and what it lacks is named.

SAMPLES = suite("command_guard").data.read("starter").samples[:3]


def test_what_the_ledger_holds_has_ended_and_the_rest_needs_a_call(tmp_path: Path) -> None:
    context = RunContext("run", "command_guard", Lake(str(tmp_path / "lake")), Configuration())
    asking = [Conversation(Item(sample, "a/model", None, "direct", 0)) for sample in SAMPLES]
    requests = [next_request(context, conversation) for conversation in asking]
    known = [request.prompt_hash for request in requests if request is not None][:2]
    append(context.lake, [{**call(0, run_id="another"), "prompt_hash": prompt, "model": "a/model"} for prompt in known])

    replay = replay_from_ledger(context, asking, LedgerIndex.read(context.lake))
    assert [conversation.first_hash for conversation in replay.ended] == known
    assert all(exchange.from_ledger for conversation in replay.ended for exchange in conversation.answered)
    (left,) = replay.unanswered
    assert left is asking[2]
    assert left.next_hash == requests[2].prompt_hash  # type: ignore[union-attr]

    planned = [replace(conversation, answered=[]) for conversation in replay.ended]  # before the replies came
    ledger_id = str(context.lake.open(CALLS).metadata().id)
    assert call_batch.fn(Batch(context, planned, ledger_id, 0, "of a process that reads the ledger only now")) == 2


def test_a_revised_baseline_misses_the_replies_of_its_older_rules_and_another_does_not(tmp_path: Path) -> None:
    context = RunContext("run", "command_guard", Lake(str(tmp_path / "lake")), Configuration())
    revised, first = (
        next_request(context, Conversation(Item(SAMPLES[0], f"baseline/{name}", None, "direct", 0)))
        for name in ("shell-patterns", "always-block")
    )
    assert revised is not None
    assert first is not None
    assert (revised.revision, first.revision) == ("4", None)
    assert revised.prompt_hash != replace(revised, revision=None).prompt_hash


# Failures are told by model and kind with a first reason, and land once a call.

(SAMPLE, *_) = suite("command_guard").data.read("starter").samples


def context(folder: Path) -> RunContext:
    file = folder / "evalake.toml"
    file.write_text('[models."a/model"]\napi_base = "http://127.0.0.1:9/v1"\n')
    return RunContext("run", "command_guard", Lake(str(folder / "lake")), read_configuration(file))


def failed(kind: Any, prompt: str, model: str = "a/model") -> Conversation:
    failure = Failure(kind, f"{kind} of {prompt}", 3)
    return Conversation(Item(SAMPLE, model, None, "direct", 0), prompt, [Exchange(prompt, failure)])


def test_they_are_told_by_model_with_its_address_and_the_first_reason(tmp_path: Path) -> None:
    counter = FailureCounter(context(tmp_path))
    for conversation in (failed("timeout", "p"), failed("rate_limit", "q"), failed("rate_limit", "r")):
        counter.add(conversation)
    counter.add(failed("timeout", "s", "another/model"))
    assert counter.kinds == {"timeout": 2, "rate_limit": 2}
    first, second = str(counter).split("; ")
    assert first.startswith("a/model at http://127.0.0.1:9/v1: ")
    assert first.endswith(": 2 rate_limit, 1 timeout (timeout of p)")
    assert second == "another/model: 1 timeout (timeout of s)"


# Missing items are counted by model and kind, with what they leave open; replies of several versions are warned of.


@pytest.fixture
def missing_context(tmp_path: Path) -> RunContext:
    """A run of 12 commands by `m`, all right, and of 12 by `n`."""
    lines = [recorded(n, model, "ALLOW" if n % 2 else "BLOCK") for n in range(12) for model in "mn"]
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, suite("command_guard"), [tmp_path / "lines.jsonl"])
    return RunContext(run_id, "command_guard", lake, Configuration())


def lack(context: RunContext, count: int) -> list[str]:
    """List so many more items of `m` in the manifest; returns their prompt hashes."""
    items = context.lake.frame(RUN_ITEMS).filter(pl.col("model") == "m").collect().to_dicts()[:count]
    hashes = [f"{number:064x}" for number in range(count)]
    rows = [item | {"item_id": h, "prompt_hash": h, "sample_hash": h} for item, h in zip(items, hashes, strict=True)]
    land(context.lake, RUN_ITEMS, conform(rows, RUN_ITEMS))
    return hashes


def warnings(context: RunContext) -> list[str]:
    """The warnings of a snapshot made now."""
    amended(context.lake, context.run_id, snapshot_id=(snapshot_id := measure(context)))
    row = context.lake.frame(SNAPSHOTS).filter(pl.col("snapshot_id") == snapshot_id).collect().row(0, named=True)
    return list(row["warnings"])


def test_what_is_missing_is_counted_by_kind_with_what_it_leaves_open(missing_context: RunContext) -> None:
    hashes = lack(missing_context, 3)
    unknown = dict.fromkeys(("latency_ms", "queue_ms", "waited_ms", "concurrency", "failed_cost_usd"))
    failure = {
        "run_id": missing_context.run_id,
        "replicate": 0,
        "model": "m",
        "kind": "rate_limit",
        "message": "",
        "attempts": 3,
    }
    when = missing_context.lake.frame(SNAPSHOTS).collect()["created_at"][0]
    first = {"kind": "authentication", "failed_at": when - timedelta(hours=1)}  # in an attempt before
    for of_attempt, asked in ((first, hashes), ({"failed_at": when}, hashes[:2])):
        rows = [{**failure, **unknown, **of_attempt, "prompt_hash": h} for h in asked]
        land(missing_context.lake, CALL_FAILURES, conform(rows, CALL_FAILURES))
    append(missing_context.lake, [{**call(1), "prompt_hash": hashes[2], "answered_at": when}])
    (told,) = warnings(missing_context)
    assert told.startswith("m: 3 of 15 items are missing (2 rate_limit, 1 not asked); whatever they are: ")
    assert "malicious_detection_rate 0.667 to 1" in told
    (of_report,) = as_data(build_report(missing_context.lake, missing_context.run_id))["missing"]
    bounds = of_report.pop("bounds")
    kinds = {"rate_limit": 2, NOT_ASKED: 1}
    assert of_report == {"model": "m", "judge": None, "items": 15, "missing": 3, "kinds": kinds}
    assert bounds["malicious_detection_rate"] == pytest.approx([6 / 9, 1])


def test_samples_that_either_model_lacks_leave_their_difference_open(missing_context: RunContext) -> None:
    """`m` lacks a quarter, of which `n` lacks one: the interval reaches further by what these may be."""
    lost = [f"sample_id = 's{n}' AND model IN ('m', '{'n' if n == 0 else 'm'}')" for n in range(3)]
    missing_context.lake.open(GUARD.results).delete(" OR ".join(lost))
    amended(missing_context.lake, missing_context.run_id, snapshot_id=measure(missing_context))
    ((pair,),) = build_report(missing_context.lake, missing_context.run_id).comparisons.values()
    assert (pair.ci_low, pair.ci_high) == pytest.approx((-0.402 - 0.327, 0.155 + 0.327), abs=0.001)


def test_replies_of_several_versions_are_warned_of(missing_context: RunContext) -> None:
    first, second = lack(missing_context, 2)
    replies = [
        {**call(number, endpoint=IMPORT), "prompt_hash": h, "model": "m", "model_reported": f"m-2026-0{number}"}
        for number, h in ((1, first), (2, second))
    ]
    ledger.append(missing_context.lake, replies)
    assert "m was answered by several versions: m-2026-01 (1 calls), m-2026-02 (1 calls)" in warnings(missing_context)
    assert json.dumps(warnings(missing_context)).count("several versions") == 1


# What came of a run's items is counted from the lake, kept, and counted again for runs from before it was kept.

GUARD = suite("command_guard")


def imported(folder: Path, *lines: str, tolerance: Tolerance = Tolerance()) -> tuple[Lake, dict[str, Any]]:  # noqa: B008
    """The lake and the row of a run of these recorded results."""
    (folder / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(folder / "lake"))
    run_id = import_recorded(lake, GUARD, [folder / "lines.jsonl"], tolerance=tolerance)
    return lake, run_row(lake, run_id)


def parrot(number: int, model: str) -> str:
    return recorded(number, model, response="I am just a parrot.")


def test_each_model_is_counted_by_kind(tmp_path: Path) -> None:
    lines = [recorded(n, "good") for n in range(10)]
    lines += [parrot(n, "mixed") if n < 3 else recorded(n, "mixed", None if n < 5 else "ALLOW") for n in range(10)]
    lake, run = imported(tmp_path, *lines)
    good, mixed = coverage_of(lake, run)
    assert good == Coverage("good", None, "mine", 10, 10)
    kinds = {"format_error": 3, "empty (nothing)": 2}
    assert mixed == Coverage("mixed", None, "mine", 10, 10, 5, without_verdict_kinds=kinds)
    assert run["state"] == "completed"
    assert "mixed: 3 of 10 (30.0 %) replies hold no verdict: 3 format_error" in run["message"]


def test_refused_lines_are_counted_by_the_model_that_they_name_and_end_an_import_incomplete(tmp_path: Path) -> None:
    bad = [recorded(n, "b", label="wicked") for n in (20, 21)]
    lines = [recorded(0, "a"), recorded(1, "a"), recorded(0, "a"), *bad, recorded(30, "a", colour="red"), "{not json"]
    lake, run = imported(tmp_path, *lines)
    assert (run["state"], run["rows_quarantined"]) == ("incomplete", 4)
    rows = {row.model: row for row in coverage_of(lake, run)}
    assert {model: (row.asked, row.refused) for model, row in rows.items()} == {
        "a": (2, {UNREADABLE: 1}),
        "b": (0, {UNREADABLE: 2}),
        "": (0, {UNREADABLE: 1}),
    }
    assert rows[""].left_out == {"repeated": 1}
    assert lake.frame(QUARANTINE).collect().height == 4


def test_a_run_from_before_it_was_kept_is_counted_when_it_is_looked_at(tmp_path: Path) -> None:
    lake, run = imported(tmp_path, *(recorded(n, "m", "ALLOW" if n % 2 else "BLOCK") for n in range(8)))
    kept = coverage_of(lake, run)
    shutil.rmtree(tmp_path / "lake" / RUN_COVERAGE.table)
    old = {**run, "parameters": "{}"}
    assert coverage_of(Lake(lake.uri), old) == kept == [Coverage("m", None, "mine", 8, 8)]
    assert tolerance_of(old) == Tolerance()
    assert coverage_of(lake, {**run, "state": "running"}) == []


def sample(number: int, label: str) -> Sample:
    return Sample("command_guard", "d", f"s{number}", f"command {number}", label=label)


def test_a_source_tells_what_a_rule_left_out_from_what_was_refused_and_which_label_it_lost() -> None:
    skipped = (
        Skipped("f:1", "duplicate"),
        Skipped("f:2", "malicious without category", "{}", "malicious"),
        Skipped("f:3", "not a JSON object", "{"),
    )
    source = Source.of(Dataset("d", (sample(1, "harmless"), sample(2, "harmless")), skipped))
    assert (source.rows, source.left_out) == (5, {"duplicate": 1})
    assert source.refused == {"malicious without category": 1, "not a JSON object": 1}
    assert source.lost_labels == {"malicious"}
    assert Source.of(Dataset("d", (sample(1, "malicious"),), skipped)).lost_labels == frozenset()
