"""Batch jobs that are cut off anywhere: every request is answered, paid and landed once, and nothing stays behind."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalake.contracts.tables import BATCH_JOBS, CALLS
from evalake.request import RunRequest
from evalake.storage.lake import Lake
from evalake.tasks import jobs as module
from evalake.tasks.converse import Conversation
from evalake.tasks.jobs import Jobs
from evalake.tasks.preflight import Plan, check
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.walk import walk
from tests.servers.model_server import ModelServer

FORMS = ["hosted_vllm/guard", "anthropic/claude-sonnet-4-5"]
STEPS = ("begin", "advance", "end_requests")


class KilledError(BaseException):
    """Ends a process at once: nothing catches it, so nothing is tidied up."""


class Work:
    """A plan of three requests to one model, and what each attempt at it does."""

    def __init__(self, folder: Path, server: ModelServer, model: str, more: str = "") -> None:
        base = server.api_base if model.startswith("hosted") else server.address
        configuration, data = folder / "evalake.toml", folder / "commands.jsonl"
        price = "price = { input = 1.0, output = 2.0, batch = 0.5 }\n"
        configuration.write_text(f'{more}[models."{model}"]\napi_base = "{base}"\napi_key_env = "TEST_KEY"\n{price}')
        lines = [{"sample_id": f"s{n}", "command": f"cat # {n:05d}", "label": "malicious"} for n in range(3)]
        data.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.lake, self.server, self.model = Lake(str(folder / "lake")), server, model
        asked = {"models": [model], "datasets": [str(data)], "lake": self.lake.uri, "batch": True}
        self.plan: Plan = check(RunRequest("command_guard", configuration_file=configuration, **asked))

    def context(self, run_id: str = "run") -> RunContext:
        plan = self.plan
        context = RunContext(run_id, "command_guard", self.lake, plan.configuration, ceiling=plan.ceiling)
        return replace(context, batched=plan.batched)

    def attempt(self, run_id: str = "run") -> tuple[Jobs, list[Conversation]]:
        jobs, ended = Jobs(context := self.context(run_id), self.plan.batched), list[Conversation]()
        jobs.collect()
        walk(context, self.plan, ended.extend, jobs)
        return jobs, ended

    def to_the_end(self) -> list[Conversation]:
        for _ in range(5):
            jobs, ended = self.attempt()
            if not jobs.waiting:
                return ended
        raise AssertionError(f"it still waits: {jobs.message}")

    def states(self) -> list[str]:
        rows = self.lake.frame(BATCH_JOBS).sort("revision").group_by("job_id").last().collect()
        return sorted(rows["state"])


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "key-of-the-test")


@pytest.fixture
def work(tmp_path: Path, model_server: ModelServer, request: pytest.FixtureRequest) -> Work:
    return Work(tmp_path, model_server, getattr(request, "param", FORMS[0]))


def killing(at: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Kill this attempt at one of its steps: before or after each commit and each request; tells whether it was."""
    steps = count()

    def around(step: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **kwargs: Any) -> Any:
            if next(steps) == at:
                raise KilledError
            done = step(*args, **kwargs)
            if next(steps) == at:
                raise KilledError
            return done

        return stepped

    for name in STEPS:
        monkeypatch.setattr(module, name, around(getattr(module, name)))
    monkeypatch.setattr(httpx.Client, "request", around(httpx.Client.request))
    return lambda: next(steps) > at


@pytest.mark.parametrize("work", FORMS, indirect=True)
def test_an_attempt_may_die_at_any_step(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE", timedelta(0))
    kills = 0
    for at in count():
        folder = tmp_path / str(at)
        folder.mkdir()
        work = Work(folder, work.server, work.model)
        jobs = work.server.batches
        jobs.paid.clear()
        with monkeypatch.context() as patch:
            reached = killing(at, patch)
            try:
                work.attempt()
                work.attempt()
            except KilledError:
                kills += 1
        ended = work.to_the_end()
        assert sorted(jobs.paid.values()) == [1, 1, 1], at
        assert (len(ended), sorted(each.answered[-1].outcome.text for each in ended)) == (3, ["ok"] * 3)
        calls = work.lake.frame(CALLS).collect()
        assert (calls.height, calls["prompt_hash"].n_unique(), calls["cost_usd"].unique().to_list()) == (3, 3, [15e-6])
        assert (work.states(), jobs.files) == (["closed"], {})
        if not reached():
            break
    assert kills == at > 15
