"""Runs by batch jobs: they wait, collect, and end as runs by single calls do; nothing is lost or paid twice."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow
from prefect.states import Pending

from evalake.contracts.tables import BATCH_JOBS, BATCH_REQUESTS, CALLS, METRIC_SNAPSHOTS, RUN_ATTEMPTS, RUN_ITEMS, RUNS
from evalake.flows.evaluate import collect, evaluate
from evalake.server.viewer.run import run_detail
from evalake.server.viewer.run_index import RunIndexes
from evalake.suites.command_guard.contract import RESULTS
from tests.integration.cli.command import evalake_here
from tests.integration.flows.judges import strict
from tests.integration.flows.workplace import MODEL, Workplace

NOBODY = "http://127.0.0.1:9/v1"


def values(work: Workplace, run_id: str) -> list[Any]:
    """What a run measured, all but how long it took."""
    rows = work.rows(METRIC_SNAPSHOTS).filter(pl.col("run_id") == run_id, ~pl.col("metric").str.contains("latency"))
    return rows.select("metric", "slice", "slice_value", "value", "n").sort(pl.all()).rows()


def test_a_run_waits_collects_and_measures_what_one_by_calls_does(work: Workplace) -> None:
    data, jobs = work.dataset(6), work.server.batches
    jobs.held = True
    first = work.run(data, batch=True)
    assert (first["flow_state"], first["state"], first["calls_made"]) == ("Waiting", "incomplete", 0)
    assert "6 items for 1 batch job with 6 requests until 2096-10-02" in first["message"]
    jobs.held, jobs.expires, jobs.fails = False, {"# 00001"}, {"# 00002"}
    third = work.run(data, batch=True)
    assert (third["flow_state"], third["calls_made"]) == ("Waiting", 5)
    assert work.asked() == 1, "what failed is called at once"
    jobs.expires = set()
    last = work.run(data, batch=True)
    assert (last["run_id"], last["flow_state"], last["state"]) == (first["run_id"], "Completed", "completed")
    assert (last["calls_made"], work.rows(CALLS).height) == (6, 6)
    assert sorted(jobs.paid.values()) == [1] * 5
    assert (jobs.files, work.rows(BATCH_REQUESTS)["request"].drop_nulls().to_list()) == ({}, [])
    assert set(work.rows(BATCH_JOBS).sort("revision").group_by("job_id").last()["state"]) == {"closed"}
    single = work.run(data, first_replicate=1)
    assert (single["calls_made"], values(work, single["run_id"])) == (6, values(work, last["run_id"]))
    assert work.rows(RESULTS).height == 12


def audits(work: Workplace, *judges: str) -> dict[str, Any]:
    """What asks for four audits by jobs, with judges of that name."""
    subject = "hosted_vllm/subject"
    work.server.rule(model="subject", reply=json.dumps({"verdict": "safe", "confidence": 0.9, "findings": []}))
    work.server.rule(model="strict", reply=strict)
    for name in (subject, *judges):
        with work.configuration.open("a") as file:
            file.write(f'[models."{name}"]\napi_base = "{work.server.api_base}"\nbatch = true\n')
    place = {"lake": work.lake.uri, "configuration_file": str(work.configuration)}
    return {"suite": "solidity_audit", "models": [subject], "judges": [*judges], "first": 4, **place}


def test_all_judges_of_an_audit_that_the_ceiling_forbids_wait_for_nothing(work: Workplace) -> None:
    told = evaluate(**audits(work, "hosted_vllm/strict", "hosted_vllm/lenient"), max_calls=2, return_state=True).message
    assert "waiting: 4 items for 1 batch job with 2 requests" in str(told)


def test_the_flow_collect_goes_on_with_the_judges_of_what_came(work: Workplace) -> None:
    asked = audits(work, "hosted_vllm/strict")
    place = {name: asked[name] for name in ("lake", "configuration_file")}
    work.server.rule(model="guard", reply="Good work.\n\n60")
    work.server.rule(model="guard", contains="\n60", reply="None.")
    assert evaluate(**asked, return_state=True).name == "Waiting"
    assert work.run(models=(), suite="session_review", judges=[MODEL], first=1, batch=True)["flow_state"] == "Waiting"
    told = []
    for _ in range(3):
        told.append(collect(**place, return_state=True).message)
    assert told == [
        "2 runs wait for batch jobs, 2 of them were continued",  # and their judges are asked
        "2 runs wait for batch jobs, 2 of them were continued",
        "0 runs wait for batch jobs, 0 of them were continued",
    ]
    ended = work.rows(RUNS).sort("suite").select("suite", "state", "calls_made").rows()
    assert ended == [("session_review", "completed", 2), ("solidity_audit", "completed", 8)]
    assert work.asked() == 0
    assert work.rows(RUN_ATTEMPTS)["attempt"].sort().to_list() == [1, 1, 2, 2, 3, 3]


def test_the_command_exits_with_3_while_it_waits_and_shows_both_prices(work: Workplace) -> None:
    work.configuration.write_text(work.configuration.read_text().replace("output = 2.0", "output = 2.0, batch = 0.5"))
    order = ["run", "command_guard", "--models", MODEL, "--dataset", work.dataset(2), "--batch"]
    order += ["--config", str(work.configuration), "--lake", work.lake.uri]
    first, _, cost = evalake_here(*order, "--dry-run", folder=work.folder).stdout.partition("by batch jobs about ")
    assert (first.count("USD;"), cost[:1]) == (1, "0")
    work.server.batches.held = True
    waiting = evalake_here(*order, "--json", folder=work.folder)
    assert (waiting.returncode, json.loads(waiting.stdout)["state"]) == (3, "waiting")
    assert "hosted_vllm/guard: in_progress, 0 of 2 answered until 2096-10-02" in waiting.stderr
    place = ["--lake", work.lake.uri]
    (listed,) = json.loads(evalake_here("runs", "--json", *place, folder=work.folder).stdout)
    assert listed["state"] == "waiting"
    for command in (["gate", listed["run_id"], "--rule", "accuracy >= 0"], ["report", listed["run_id"]]):
        held = evalake_here(*command, *place, folder=work.folder)
        assert (held.returncode, "is waiting, and nothing of it is measured yet: 2 items" in held.stderr) == (2, True)
    job = run_detail(RunIndexes(work.lake), listed["run_id"]).jobs[0]
    assert (job.state, job.done, job.requests) == ("in_progress", 0, 2)
    cancel = ["cancel", listed["run_id"], "--config", str(work.configuration), *place]
    assert evalake_here(*cancel, folder=work.folder).returncode == 0
    assert [each.state for each in work.server.batches.jobs.values()] == ["cancelled"]
    (listed,) = json.loads(evalake_here("runs", "--json", *place, folder=work.folder).stdout)
    assert (listed["state"], listed["message"][:23]) == ("incomplete", "it awaits no batch job ")
    again = evalake_here(*cancel, folder=work.folder)
    assert (again.returncode, "waits for no batch job" in again.stderr) == (1, True)


def test_the_flow_collect_deletes_what_a_cut_off_run_left_at_the_provider(work: Workplace) -> None:
    data, jobs = work.dataset(2), work.server.batches
    jobs.held = True
    work.run(data, batch=True)
    jobs.held, jobs.drops = False, {"DELETE files one"}
    assert work.run(data, batch=True)["state"] == "completed"
    assert jobs.files
    collect(lake=work.lake.uri, configuration_file=str(work.configuration))
    assert (jobs.files, sorted(jobs.paid.values()), work.rows(CALLS).height) == ({}, [1, 1], 2)
    assert "closed" in set(work.rows(BATCH_JOBS)["state"])


def test_a_run_goes_on_with_a_source_that_has_grown_and_with_no_other_change(work: Workplace) -> None:
    jobs, place = work.server.batches, {"lake": work.lake.uri, "configuration_file": str(work.configuration)}
    jobs.held = True
    first = work.run(work.dataset(2), batch=True)
    grown = work.run(work.dataset(3), batch=True)
    assert (grown["run_id"], work.rows(RUN_ITEMS)["dataset_version"].n_unique()) == (first["run_id"], 1)
    source = Path(work.dataset(3))
    source.write_text(source.read_text().replace("malicious", "harmless", 1))
    jobs.held = False
    told = str(collect(**place, return_state=True).message)
    assert f"{first['run_id']}: samples like 's0' have changed or gone since the run" in told
    other = work.run(str(source), batch=True)
    assert (other["run_id"] != first["run_id"], other["state"], sum(jobs.paid.values())) == (True, "completed", 3)
    priced = work.configuration.read_text().replace("price", "parameters = { max_tokens = 9 }\nprice", 1)
    work.configuration.write_text(priced)
    with get_client(sync_client=True) as client:  # as *Retry* does
        client.set_flow_run_state(UUID(other["flow_run_id"]), Pending(), force=True)
        flow_run = client.read_flow_run(UUID(other["flow_run_id"]))
    state: Any = run_flow(evaluate, flow_run, work.parameters(str(source), batch=True), return_type="state")
    assert f"the parameters of requests have changed since the run {other['run_id']} began" in state.message
    assert work.rows(RUNS).filter(run_id=other["run_id"])["state"].item() == "completed"


def test_the_flow_collect_fails_where_a_provider_cannot_be_asked_and_continues_the_other_runs(work: Workplace) -> None:
    gone, silent, jobs, written = "hosted_vllm/gone", "hosted_vllm/silent", work.server.batches, work.configuration

    def use(api_base: str, before: str = written.read_text()) -> None:
        place = f'api_base = "{api_base}"\nbatch = true\n'
        written.write_text(f'{before}[models."{gone}"]\n{place}[models."{silent}"]\nendpoint = "ours"\n{place}')

    use(work.server.api_base)
    jobs.held = True
    lost, unheard = (work.run(work.dataset(2), models=[name], batch=True)["run_id"] for name in (gone, silent))
    found = work.run(work.dataset(3), batch=True)["run_id"]
    jobs.held = False
    use(NOBODY)
    told = collect(lake=work.lake.uri, configuration_file=str(work.configuration), return_state=True)
    assert told.is_failed()
    message = told.message or ""
    expected = f"3 runs wait for batch jobs, 1 of them were continued; 2 failures: {lost}: the batch job "
    assert (expected in message, "name the job's endpoint again" in message, f"{unheard}: " in message) == (True,) * 3
    states = dict(work.rows(RUNS).select("run_id", "state").iter_rows())
    assert states == {found: "completed", lost: "incomplete", unheard: "incomplete"}
