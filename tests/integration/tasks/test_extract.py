"""Extracting and publishing samples; announcing and claiming."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Semaphore

import pytest

from evalake.contracts.tables import CONTRACT_CHECKS, QUARANTINE, SAMPLES
from evalake.core.configuration import Configuration, ModelOptions
from evalake.core.errors import EvalakeError, SourceError, SuiteError, UsageError
from evalake.models.client import Client
from evalake.request import RunRequest
from evalake.sdk import Dataset, Item, Skipped
from evalake.storage.lake import Lake
from evalake.storage.ledger import Key, newest_index
from evalake.storage.reservations import Claims
from evalake.suites.registry import suite
from evalake.tasks.batch import Batch, call_batch
from evalake.tasks.call import claim
from evalake.tasks.converse import Conversation, replay_from_ledger
from evalake.tasks.extract import extract, read_datasets
from evalake.tasks.preflight import check, lines_of
from evalake.tasks.publish import publish
from evalake.tasks.runtime.context import RunContext
from tests.integration.storage.rows import TOYS, toy
from tests.servers.model_server import ModelServer

# Datasets as sources give them: what is refused, what was forgotten, and what lands.

GUARD = suite("command_guard")
STARTER = GUARD.data.read("starter")


def reading(*datasets: Dataset) -> object:
    """The suite, whose sources are named by number."""
    return replace(GUARD, data=replace(GUARD.data, read=lambda source: datasets[int(source)]))


def test_starter_data_are_read_without_a_source(tmp_path: Path) -> None:
    assert [dataset.name for dataset in read_datasets(GUARD, [], Lake(str(tmp_path)))] == [STARTER.name]
    with pytest.raises(UsageError, match="name a source with --dataset"):
        read_datasets(replace(GUARD, data=replace(GUARD.data, starter=())), [], Lake(str(tmp_path)))


def test_an_empty_source_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="the dataset nothing is empty"):
        read_datasets(reading(Dataset("nothing", (), ())), ["0"], Lake(str(tmp_path)))  # type: ignore[arg-type]
    for name in "abcdefg":
        (tmp_path / f"{name}.csv").write_text("nothing\n1\n")
    with pytest.raises(SourceError, match=r"a\.csv.*; .*e\.csv.*; 2 more sources are refused$"):
        read_datasets(GUARD, [str(tmp_path / "*.csv")], Lake(str(tmp_path)))
    with pytest.raises(SourceError, match=f"two sources are named {STARTER.name}"):
        read_datasets(reading(STARTER), ["0", "0"], Lake(str(tmp_path)))  # type: ignore[arg-type]


def test_a_password_in_a_source_is_refused_and_a_fault_of_a_suites_code_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        read_datasets(GUARD, ["postgresql://me:hidden@host/db"], Lake(str(tmp_path)))
    assert "hidden" not in str(refused.value)
    with pytest.raises(SuiteError, match="the code of command_guard that reads '9' failed with IndexError"):
        read_datasets(reading(), ["9"], Lake(str(tmp_path)))  # type: ignore[arg-type]


def test_samples_land_once_and_malformed_ones_are_put_aside(lake: Lake) -> None:
    bad = Skipped("line 3", "no label", '{"command": "ls"}')
    dataset = Dataset(STARTER.name, STARTER.samples[:5], (bad, Skipped("line 9", "empty")))
    for run_id in ("run", "run", "another"):  # each run is asked by its own id
        extracted = extract(lake, run_id, [dataset])
        assert (extracted.quarantined, extracted.skipped) == (1, {"no label": 1, "empty": 1})
    assert lake.frame(SAMPLES).collect()["sample_id"].to_list() == [sample.sample_id for sample in dataset.samples]
    assert sorted(lake.frame(QUARANTINE).collect()["run_id"]) == ["another", "run"]


def test_a_version_that_is_there_whole_is_not_written_again_and_one_that_lacks_samples_is(lake: Lake) -> None:
    dataset = Dataset(STARTER.name, STARTER.samples[:5])
    extract(lake, "first", [dataset])
    before = lake.version(SAMPLES)
    extract(lake, "second", [dataset])
    assert lake.version(SAMPLES) == before
    lake.open(SAMPLES).delete("position = 3")
    extract(lake, "third", [dataset])
    assert sorted(lake.frame(SAMPLES).collect()["position"]) == [0, 1, 2, 3, 4]


def test_rows_of_the_lake_are_a_dataset_and_a_hostile_condition_reads_no_file(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    extract(lake, "run", [STARTER])
    where = "lake://samples?where=category='file-read'&limit=3&command=input"
    (read,) = read_datasets(GUARD, [where], lake)
    assert (read.name, {sample.category for sample in read.samples}) == ("samples", {"file-read"})
    assert len(read.samples) == 3
    (tmp_path / "secret.csv").write_text("input,label\nrm,malicious\n")
    hostile = (
        f"where=1=1) union all by name select * from read_csv('{tmp_path}/secret.csv') where (1=1",
        f"where=1=1); copy samples to '{tmp_path}/out.csv'; select (1",
        "where=input like (select",
        "limit=3; drop table samples",
        "where=origin='a'&where=origin='b'",
    )
    for each in hostile:
        with pytest.raises(EvalakeError):
            read_datasets(GUARD, [f"lake://samples?{each}"], lake)
    with pytest.raises(SourceError, match="names no table"):
        read_datasets(GUARD, ["lake://a/../b"], lake)
    assert not (tmp_path / "out.csv").exists()


# Write-audit-publish: good rows land once, bad ones are put aside with their rules, and each rule has a record.


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def test_a_bad_row_is_put_aside_and_the_others_land(lake: Lake) -> None:
    rows = [{"key": key, "model": "m", "size": size} for key, size in (("good", 1.0), ("bad", -1.0))]
    done = publish(lake, "run", TOYS, rows, {"state": "final"})
    assert (done.landed.inserted, done.quarantined) == (1, 1)
    assert lake.frame(TOYS).collect()["key"].to_list() == ["good"]
    (refused,) = lake.frame(QUARANTINE).collect().to_dicts()
    assert (refused["table_name"], refused["rules"]) == ("toys", ["size_not_negative"])
    assert '"bad"' in refused["payload"]
    checks = {row["rule_id"]: row["passed"] for row in lake.frame(CONTRACT_CHECKS).collect().to_dicts()}
    assert checks["size_not_negative"] is False
    publish(lake, "run", TOYS, rows[1:], {"state": "early"})  # a further attempt, in other batches
    assert lake.frame(QUARANTINE).collect().height == 1
    publish(lake, "another run", TOYS, rows[1:], {"state": "final"})
    assert lake.frame(QUARANTINE).collect().height == 2


def test_a_key_that_was_decoded_into_a_column_is_in_no_table(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEONES_API_KEY", "of-somebody-else-27182")
    publish(lake, "run", TOYS, [toy("says of-somebody-else-27182"), toy("of-somebody-else-27182", size=-1.0)])
    assert lake.frame(TOYS).collect()["key"].to_list() == ["says [redacted]"]
    assert "of-somebody-else-27182" not in str(lake.frame(QUARANTINE).collect().to_dicts())


# What a run is over, in words, before it asks.


def test_datasets_are_told_with_their_categories_and_models_with_their_items(tmp_path: Path) -> None:
    plan = check(RunRequest("command_guard", lake=str(tmp_path / "lake"), models=("baseline/always-block",), first=10))
    *datasets, last = lines_of(plan)
    assert [line.split(":")[0] for line in datasets] == [dataset.name for dataset in plan.datasets]
    assert datasets[0].split(": ")[1].startswith("10 samples (")
    assert last == "10 items, baseline/always-block"


# Runs that ask the same calls at once, each under an order of its own: every call is paid once.

CALLS = [("a" * 64, 0, "provider"), ("a" * 64, 1, "provider")]
HOLD = """
import sys
from evalake.storage.reservations import Claims
claims = Claims(sys.argv[1])
print(claims.take(("a" * 64, 0, "provider")), flush=True)
sys.stdin.readline()
"""


def test_a_call_that_several_runs_ask_at_once_is_paid_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    signs = Semaphore(0)  # that a call goes on, so that who needs it waits on
    monkeypatch.setattr("evalake.tasks.call.KEEP_SECONDS", 0.01)
    monkeypatch.setattr(Claims, "keep", lambda _: signs.release())
    lake, samples = Lake(str(tmp_path / "lake")), suite("command_guard").data.read("starter").samples[:6]

    def run(run_id: str, first: int) -> list[Conversation]:
        context = RunContext(run_id, "command_guard", lake, configuration)
        asking = [Conversation(Item(sample, "openai/m", None, "direct", 0)) for sample in samples[first:]]
        ledger_id, version, index = newest_index(lake)
        replay = replay_from_ledger(context, asking, index)
        batch = Batch(context, replay.unanswered, ledger_id, version, run_id)
        call_batch.fn(batch)
        assert batch.ended is not None
        return [*replay.ended, *batch.ended]

    with ModelServer() as server:
        server.rule(reply=lambda _: str(signs.acquire(timeout=5)), latency=0.3)
        configuration = Configuration(models={"openai/m": ModelOptions(api_base=server.api_base)})
        with ThreadPoolExecutor() as pool:
            ended = [*pool.map(run, ["one", "two"], [0, 2])]
        assert len(server.requests()) == 6
    assert all(len(each.answered) == 1 and not each.failed for runs in ended for each in runs)
    bought = [sum(not each.answered[0].from_ledger for each in runs) for runs in ended]
    assert sum(bought) == 6
    assert {each.answered[0].outcome.text for runs in ended for each in runs} == {"True"}  # type: ignore[union-attr]


def test_a_claim_of_another_process_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    claims = Claims("a lake")
    assert not claims.are_shared()
    command = [sys.executable, "-c", HOLD, "a lake"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert claims.are_shared()
        assert [claims.take(each) for each in CALLS] == [False, True]
        with Client(Configuration()) as client:  # one that stands still is not waited for without end
            assert asyncio.run(claim(claims, Key(*CALLS[0]), client, patience_seconds=0.0))
        other.kill()
        other.wait()
    assert not claims.are_shared()
    assert [claims.take(each) for each in CALLS] == [True, False]
    claims.release(CALLS)
    assert claims.take(CALLS[1])
