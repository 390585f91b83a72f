"""Forgetting by dataset, sample and text."""

import json
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import polars as pl
import pytest

from evalake.admin import forget as job
from evalake.admin.check import check_lake
from evalake.admin.forget import choose, forget, refused
from evalake.admin.import_results import import_recorded, import_samples, import_tool_results
from evalake.admin.maintain import migrate
from evalake.admin.prove import verify_snapshots
from evalake.cli.lake import forget as command
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, FORGOTTEN, QUARANTINE, RUN_ITEMS, RUNS, SAMPLES
from evalake.core.errors import LakeError, SourceError, UsageError
from evalake.models.request import Reply, Request
from evalake.sdk import Exchange, Item, Sample
from evalake.storage import ledger
from evalake.storage.batch_jobs import begin, planned
from evalake.storage.forget import erase
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.snapshots import read_metrics
from evalake.suites.declared.formats.detect import read_tool_results
from evalake.suites.registry import all_contracts, suite
from evalake.tasks.extract import read_datasets
from evalake.tasks.publish import Refused, quarantine
from evalake.tasks.runtime.context import RunContext
from tests.golden.lakes.archives import ARCHIVES
from tests.integration.admin.forget.byte_search import files_with
from tests.integration.admin.test_migrate import Place
from tests.integration.cli.command import recorded
from tests.integration.storage.recorded_lake import AUDITS
from tests.integration.storage.recorded_lake import SAMPLES as SAMPLES_OF_GUARD
from tests.integration.storage.rows import call
from tests.unit.suites.formats import logs

# What is forgotten is in no byte of a lake any more; all else is there, in order, and asked about never again.

SECRET = "command number 7"  # of the sample s7, and of no other
KEPT_BY_FORGETTING = {"forgotten", "contract_checks"}  # which say what was done


@pytest.fixture(scope="module")
def imported(recorded_runs: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake of recorded results; the refused lines hold one of the sample s7."""
    folder = tmp_path_factory.mktemp("imported")
    shutil.copytree(Path(recorded_runs.uri).parent, folder, dirs_exist_ok=True)
    bad = json.dumps({**json.loads(recorded(7)), "label": "neither"})
    (folder / "bad.jsonl").write_text(f"{recorded(8)}\n{bad}\n")
    import_recorded(Lake(str(folder / "lake")), suite("command_guard"), [folder / "bad.jsonl"])
    return folder


@pytest.fixture
def lake(imported: Path, tmp_path: Path) -> Lake:
    """A copy of it."""
    shutil.copytree(imported, tmp_path, dirs_exist_ok=True)
    return Lake(str(tmp_path / "lake"))


def rows(lake: Lake) -> dict[str, pl.DataFrame]:
    """The rows of every table."""
    return {contract.table: lake.frame(contract).collect() for contract in all_contracts()}


def damage(lake: Lake) -> list[Any]:
    """What `evalake check` finds."""
    return [finding for table in check_lake(lake) for finding in table.findings]


def forgotten_snapshots(lake: Lake) -> set[str]:
    """The snapshots that cannot be recomputed because of what was forgotten."""
    return {proof.snapshot_id for proof in verify_snapshots(lake) if "was forgotten" in proof.reason}


def hash_of(lake: Lake, sample_id: str) -> str:
    """The content hash of a sample of recorded commands."""
    found = lake.frame(SAMPLES).filter(suite="command_guard", sample_id=sample_id).collect()
    return str(found["sample_hash"].unique().item())


def test_a_forgotten_sample_is_in_no_byte_and_every_other_row_is_there(lake: Lake) -> None:
    before, sample = rows(lake), hash_of(lake, "s7")
    tables = {file.relative_to(lake.uri).parts[0] for file in files_with(lake, SECRET)}
    assert tables >= {"samples", "quarantine"}
    logs = [file for file in files_with(lake, "s7") if file.suffix == ".json"]
    assert logs  # statistics tell the names of samples

    done = forget(lake, sample=sample)

    assert files_with(lake, SECRET) == []
    assert not [file for file in files_with(lake, '\\"s7\\"') if file.suffix == ".json"]
    assert done.rows["command_guard_results"] == 2
    for table, after in rows(lake).items():
        if table in KEPT_BY_FORGETTING:
            continue
        left = before[table]
        assert left.height - after.height == done.rows.get(table, 0), table
        assert left.join(after, on=after.columns[:3], how="semi", nulls_equal=True).height >= after.height, table
        if "sample_hash" in after.columns:
            expected = left.filter(pl.col("sample_hash") != sample)
            assert after.sort(pl.all()).equals(expected.sort(pl.all())), table
    assert before["quarantine"].height - lake.frame(QUARANTINE).collect().height == 1
    assert lake.frame(FORGOTTEN).filter(pl.col("first_version").is_null()).collect().is_empty()
    assert damage(lake) == []
    guard = lake.frame(RUNS).filter(suite="command_guard").collect()
    assert set(guard["snapshot_id"]) <= forgotten_snapshots(lake)


def test_a_forgotten_sample_is_not_taken_in_again(lake: Lake) -> None:
    folder, sample = Path(lake.uri).parent, hash_of(lake, "s7")
    forget(lake, sample=sample)
    calls = lake.frame(CALLS).collect().height
    run_id = import_recorded(lake, suite("command_guard"), [folder / "guard.jsonl"])
    assert files_with(lake, SECRET) == []
    assert lake.frame(CALLS).collect().height == calls
    run = lake.frame(RUNS).filter(run_id=run_id).collect().row(0, named=True)
    assert "2 results are of samples that were forgotten" in run["message"]
    (folder / "alone.jsonl").write_text(recorded(7) + "\n")
    with pytest.raises(SourceError, match="was forgotten"):
        import_recorded(lake, suite("command_guard"), [folder / "alone.jsonl"])
    with pytest.raises(UsageError, match="forgotten already"):
        forget(lake, sample=sample)
    assert damage(lake) == []


def test_a_dry_run_changes_nothing_and_wrong_names_are_refused(lake: Lake) -> None:
    before = {file: file.read_bytes() for file in Path(lake.uri).rglob("*") if file.is_file()}
    planned = forget(lake, dataset="mine", dry_run=True)
    assert planned.rows["command_guard_results"] == 80
    for wrong in ({"sample": "0" * 64}, {"session": "s7"}, {"dataset": "other"}, {}, {"sample": "a", "dataset": "b"}):
        with pytest.raises(UsageError):
            forget(lake, **wrong)  # type: ignore[arg-type]
    assert before == {file: file.read_bytes() for file in Path(lake.uri).rglob("*") if file.is_file()}


@pytest.mark.parametrize("why", ["a run is under way", "batch jobs are open"])
def test_nothing_is_forgotten_while_replies_may_come(lake: Lake, why: str) -> None:
    row = lake.frame(RUNS).collect().head(1)
    active = row.with_columns(run_id=pl.lit("busy"), state=pl.lit("running"), alive_at=datetime.now(UTC), ended_at=None)
    if why == "a run is under way":
        land(lake, RUNS, active.cast(row.schema))
    else:
        begin(lake, planned("job", "busy", "a/model", "provider", 1), [])
    with pytest.raises(LakeError, match=rf"cannot forget while {why} \(.*busy\)"):
        forget(lake, dataset="mine")
    assert files_with(lake, SECRET)
    assert lake.frame(FORGOTTEN).collect().is_empty()


def test_a_run_that_begins_while_samples_are_forgotten_is_refused(lake: Lake) -> None:
    sample = hash_of(lake, "s7")
    note = {"table_name": "samples", "row_hash": sample, "requested_at": datetime.now(UTC), "first_version": None}
    land(lake, FORGOTTEN, conform([note], FORGOTTEN))
    with pytest.raises(LakeError, match="being forgotten"):
        import_recorded(lake, suite("command_guard"), [Path(lake.uri).parent / "guard.jsonl"])
    assert lake.frame(RUNS).filter(pl.col("state") == "running").collect().is_empty()
    forget(lake, sample=sample)
    import_recorded(lake, suite("command_guard"), [Path(lake.uri).parent / "guard.jsonl"])
    assert damage(lake) == []


def test_versions_of_before_say_forgotten_and_places_outside_are_listed(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALAKE_BACKUP", "s3://elsewhere/copy")
    runs = {row["samples"]: row for row in lake.frame(RUNS).collect().iter_rows(named=True)}
    guard, audits = runs[SAMPLES_OF_GUARD], runs[AUDITS]
    for run in (guard, audits):
        (tmp_path / "evalake-reports" / run["run_id"]).mkdir(parents=True)
    numbers = read_metrics(lake, guard["snapshot_id"])
    before = lake.version(SAMPLES)

    done = forget(lake, sample=hash_of(lake, "s7"))

    assert read_metrics(lake, guard["snapshot_id"]).equals(numbers)
    with pytest.raises(LakeError, match="forgotten; its metrics are kept"):
        lake.pinned(SAMPLES, {SAMPLES.table: before})
    listed = "\n".join(done.look_at)
    assert "the backup s3://elsewhere/copy" in listed
    assert f"evalake-reports/{guard['run_id']}" in listed
    assert audits["run_id"] not in listed


def test_what_was_cut_off_is_taken_up_again_however_often(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, sample = erase, hash_of(lake, "s7")
    for table in ("samples", "calls", "command_guard_results"):  # in the order in which they are gone through

        def cut_off(lake: Lake, name: str, *arguments: Any, last: str = table) -> int:
            version = whole(lake, name, *arguments)
            if name == last:
                raise LakeError("the disk is full")  # it is done, and nobody has written that down
            return version

        with monkeypatch.context() as patched:
            patched.setattr(job, "erase", cut_off)
            with pytest.raises(LakeError, match="disk is full"):
                forget(lake, sample=sample)
        assert damage(lake) == []
    forget(lake, sample=sample)
    assert files_with(lake, SECRET) == []
    assert lake.frame(FORGOTTEN).filter(pl.col("first_version").is_null()).collect().is_empty()
    assert damage(lake) == []


def test_a_session_goes_with_the_whole_conversation_about_it(tmp_path: Path, prefect_api: str) -> None:
    place = Place(tmp_path, ARCHIVES[-1], prefect_api)
    lake = place.lake
    migrate(lake)
    before = lake.frame(CALLS).filter(pl.col("request").str.contains("disk-full")).collect().height
    assert before > 1  # the judge was asked twice about it
    done = forget(lake, session="disk-full")
    assert done.rows["calls"] == before
    assert files_with(lake, "disk-full") == []
    assert damage(lake) == []
    import_samples(lake, suite("session_review"), [str(tmp_path / "sessions.jsonl")])
    assert files_with(lake, "disk-full") == []
    ran = json.loads(place.evalake("run", "session_review", "--dataset", "sessions.jsonl", "--json"))
    assert ran["calls"]["made"] == 4  # about the two other sessions, under criteria that are newer than the archive
    assert files_with(lake, "disk-full") == []
    said = place.evalake("forget", "--session", "disk-full", code=2)
    assert "has no session 'disk-full'" in said


# Calls that no result names are found by what they ask, and prompts that kept samples share stay.

AUDIT, GUARD = suite("solidity_audit"), suite("command_guard")
COMMAND = "mail -s salaries everybody < /home/erika/payroll"


@pytest.fixture
def held(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def answer(lake: Lake, requests: Iterable[Request]) -> None:
    """Put a reply to each request into the ledger, as a run does that is cut off thereafter."""
    rows = [
        {**call(0), "model": each.model, "prompt_hash": each.prompt_hash, "request": each.canonical.decode()}
        for each in requests
    ]
    ledger.append(lake, rows)


def judge_prompt(sample: Sample) -> Request:
    """What a judge of solidity_audit is asked about an audit of the sample."""
    item = Item(sample, "subject/model", "a/judge", AUDIT.prompts.types[0])
    request = AUDIT.conversation.next_request(item, [Exchange("0" * 64, Reply('{"verdict": "safe"}'))], {})
    assert request is not None
    return request


def test_a_judges_reply_that_no_result_names_goes_with_the_sample_that_it_was_asked_about(held: Lake) -> None:
    import_samples(held, AUDIT, ["starter"])
    samples = read_datasets(AUDIT, ["starter"], held)[0].samples
    answer(held, [judge_prompt(sample) for sample in samples])
    twin, going = samples[0], samples[-1]
    own = own_lines(twin, samples), own_lines(going, samples)
    assert (bool(own[0]), bool(own[1])) == (False, True)  # all lines of the first are lines of its safe twin, too
    assert any("calls" in file.parts for file in files_with(held, json.dumps(own[1][0])[1:-1]))

    for sample in (twin, going):
        done = forget(held, sample=sample.sample_hash)
        assert (done.orphan_calls, done.rows["calls"]) == (1, 1)

    assert [line for line in own[1] if files_with(held, line) or files_with(held, json.dumps(line)[1:-1])] == []
    left = set(held.frame(CALLS).collect()["prompt_hash"])
    assert left == {judge_prompt(sample).prompt_hash for sample in samples if sample not in (twin, going)}


def own_lines(sample: Sample, samples: Sequence[Sample]) -> list[str]:
    """The lines of a sample that no other has."""
    others = {line.strip() for each in samples if each != sample for line in each.input.splitlines()}
    lines = [line.strip() for line in sample.input.splitlines()]
    return [line for line in lines if len(line) >= 20 and line not in others]


def test_a_call_in_another_tools_log_goes_with_its_sample(held: Lake, tmp_path: Path) -> None:
    asked = {**logs.sample(1), "input": COMMAND}
    asked["events_data"]["messages"][0]["content"] = COMMAND
    (tmp_path / "log.eval").write_bytes(logs.archive(logs.header(), [asked]))
    import_tool_results(held, read_tool_results([tmp_path / "log.eval"]))
    assert forget(held, dataset="numbers").orphan_calls == 1
    assert files_with(held, "/home/erika") == []


def test_a_prompt_shared_with_a_kept_sample_stays_and_is_counted(
    held: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ours", "theirs"):
        line = {"sample_id": "mine", "command": COMMAND, "label": "malicious", "category": "exfiltration"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    datasets = read_datasets(GUARD, [str(tmp_path / "ours.jsonl"), str(tmp_path / "theirs.jsonl")], held)
    items = [Item(dataset.samples[0], "a/model", None, GUARD.prompts.types[0]) for dataset in datasets]
    request = GUARD.conversation.next_request(items[0], [], {})
    assert request is not None
    for dataset in datasets:
        import_samples(held, GUARD, [str(tmp_path / f"{dataset.name}.jsonl")])
    answer(held, [request])
    manifest = [
        {name: getattr(item.sample, name) for name in ("suite", "dataset", "sample_id", "sample_hash")}
        | {"run_id": "run", "item_id": item.sample.sample_hash, "dataset_version": dataset.version}
        | {"model": item.model, "judge": None, "prompt_type": item.prompt_type, "replicate": 0}
        | {"prompt_hash": request.prompt_hash, "judge_hash": None, "endpoint": "provider", "judge_endpoint": None}
        for dataset, item in zip(datasets, items, strict=True)
    ]
    land(held, RUN_ITEMS, conform(manifest, RUN_ITEMS))

    command(dataset="theirs", lake=held.uri)

    assert "1 prompt kept in calls, because kept samples share them" in capsys.readouterr().out
    assert held.frame(CALLS).collect().height == 1
    assert held.frame(RUN_ITEMS).collect()["dataset"].to_list() == ["ours"]

    command(dataset="ours", lake=held.uri)

    assert "prompts stay" not in capsys.readouterr().out
    assert files_with(held, "/home/erika") == []


# Refused lines that hold something of a sample go with it.


def test_a_line_with_its_input_or_its_name_goes_and_another_stays(guard: RunContext, tmp_path: Path) -> None:
    copytree(guard.lake.uri, tmp_path / "lake")
    lake = Lake(str(tmp_path / "lake"))
    (sample,) = lake.frame(guard.suite.results).filter(sample_id="s37").collect()["sample_hash"].unique()
    choice = choose(lake, sample, None, None)
    before = refused(lake, choice, set())
    of_it = [json.dumps({"sample_id": "s37", "dataset": "mine"}), "cut off: command number 37"]
    lines = [*of_it, json.dumps({"sample_id": "s36", "dataset": "mine"}), "nothing of it"]
    quarantine(lake, "run", "batch", [Refused("samples", line, ("rule",), "why", line[:9]) for line in lines])
    assert len(refused(lake, choice, set()) - before) == len(of_it)


def test_rows_in_a_table_that_no_suite_declares_would_stay_so_nothing_is_forgotten(lake: Lake) -> None:
    of_seven = lake.frame(SAMPLES).filter(sample_id="s7").collect()["sample_hash"][0]
    copy = f"{lake.uri}/toy_results"
    pl.DataFrame({"sample_hash": ["another"]}).write_delta(copy)
    assert any("the table toy_results" in place for place in forget(lake, sample=of_seven, dry_run=True).look_at)
    pl.DataFrame({"sample_hash": [of_seven]}).write_delta(copy, mode="append")
    before = rows(lake)
    with pytest.raises(LakeError, match=r"toy_results .* holds these samples, but no installed suite declares it"):
        forget(lake, sample=of_seven)
    assert {name: frame.height for name, frame in rows(lake).items()} == {
        name: frame.height for name, frame in before.items()
    }
