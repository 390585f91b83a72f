"""Batch jobs that are cut off anywhere: every request is answered, paid and landed once, and nothing stays behind."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalake.contracts.tables import BATCH_JOBS, CALLS
from evalake.core.errors import ProviderError
from evalake.models.batches import PAGE, BatchError, BatchService, ProviderJob
from evalake.models.request import Reply
from evalake.request import RunRequest
from evalake.storage.batch_jobs import jobs_of, states_of
from evalake.storage.lake import Lake
from evalake.tasks import jobs as module
from evalake.tasks.converse import Conversation
from evalake.tasks.jobs import Jobs, cancel_jobs
from evalake.tasks.preflight import Plan, check
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.walk import walk
from tests.servers import batch_jobs
from tests.servers.model_server import ModelServer

FORMS = ["hosted_vllm/guard", "anthropic/claude-sonnet-4-5", "mistral/mistral-small-latest", "xai/grok-3"]
BASES = {"anthropic": "", "xai": "/xai/v1"}
STEPS = ("begin", "advance", "end_requests")


class KilledError(BaseException):
    """Ends a process at once: nothing catches it, so nothing is tidied up."""


class Work:
    """A plan of three requests to one model, and what each attempt at it does."""

    def __init__(self, folder: Path, server: ModelServer, model: str, more: str = "") -> None:
        base = server.address + BASES.get(model.partition("/")[0], "/v1")
        configuration, data = folder / "evalake.toml", folder / "commands.jsonl"
        price = "price = { input = 1.0, output = 2.0, batch = 0.5 }\n"
        configuration.write_text(f'{more}[models."{model}"]\napi_base = "{base}"\napi_key_env = "TEST_KEY"\n{price}')
        lines = [{"sample_id": f"s{n}", "command": f"cat # {n:05d}", "label": "malicious"} for n in range(3)]
        data.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.lake, self.server, self.model = Lake(str(folder / "lake")), server, model
        asked: Any = {"models": [model], "datasets": [str(data)], "lake": self.lake.uri, "batch": True}
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


def texts(ended: list[Conversation]) -> list[str | None]:
    """The replies of conversations that were answered."""
    return [outcome.text for each in ended if isinstance(outcome := each.answered[-1].outcome, Reply)]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "key-of-the-test")


@pytest.fixture
def work(tmp_path: Path, model_server: ModelServer, request: pytest.FixtureRequest) -> Work:
    return Work(tmp_path, model_server, getattr(request, "param", FORMS[0]))


def killing(at: int, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Kill this attempt once a step of it, a commit or a request, is done; returns a function that tells if it was."""
    steps = count()

    def around(step: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **kwargs: Any) -> Any:
            done = step(*args, **kwargs)
            if next(steps) == at:
                raise KilledError
            return done

        return stepped

    for name in STEPS:
        monkeypatch.setattr(module, name, around(getattr(module, name)))
    monkeypatch.setattr(httpx.Client, "send", around(httpx.Client.send))
    return lambda: next(steps) > at


@pytest.mark.parametrize("work", FORMS[:2], indirect=True)
def test_an_attempt_may_die_at_any_step(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE", timedelta(0))
    for at in count():
        folder = tmp_path / str(at)
        folder.mkdir()
        work = Work(folder, work.server, work.model)
        jobs = work.server.batches
        jobs.paid.clear()
        with monkeypatch.context() as patch, suppress(KilledError):
            reached = killing(at, patch)
            work.attempt()
            work.attempt()
        ended = work.to_the_end()
        assert sorted(jobs.paid.values()) == [1, 1, 1], at
        assert texts(ended) == ["ok"] * 3
        calls = work.lake.frame(CALLS).collect()
        assert (calls.height, calls["prompt_hash"].n_unique(), calls["cost_usd"].unique().to_list()) == (3, 3, [15e-6])
        assert (work.states(), jobs.files) == (["closed"], {})
        if not reached():
            break
    assert at > 7


@pytest.mark.parametrize("work", FORMS, indirect=True)
def test_a_job_whose_submission_was_not_answered_is_found_at_its_provider(work: Work) -> None:
    jobs = work.server.batches
    jobs.held, jobs.drops = True, {"POST batches"}
    assert work.attempt()[0].waiting == 3
    assert work.states() == ["submitting"]
    held = work.attempt()[0]
    assert (held.waiting, len(jobs.jobs)) == (3, 1)
    jobs.held = False
    work.server.rule(reply="o\u2028\u2029\x85k")  # which JSON holds as they are, and which end a line of Python
    assert texts(work.to_the_end()) == ["o\u2028\u2029\x85k"] * 3
    assert sorted(jobs.paid.values()) == [1, 1, 1]


def test_a_submission_that_may_be_under_way_is_not_repeated(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, suppress(KilledError):
        killing(3, patch)  # the row that says so is written
        work.attempt()
    assert (work.states(), work.server.batches.jobs) == (["submitting"], {})
    waiting = work.attempt()[0]
    assert (waiting.waiting, work.server.batches.jobs) == (3, {})
    assert "is known in two minutes" in str(waiting.message)


def test_a_request_is_never_in_two_jobs(work: Work) -> None:
    work.server.batches.held = True
    assert work.attempt("first")[0].waiting == work.attempt("second")[0].waiting == 3
    assert len(work.server.batches.jobs) == 1
    (job,) = jobs_of(work.lake, "first")
    Jobs(work.context(), work.plan.batched).cancel(
        replace(job, revision=0, state="planned", provider_id=None)
    )  # as it was read before
    work.server.batches.held = False
    assert texts(work.attempt("second")[1]) == ["ok"] * 3, "a run takes over the jobs of one that has ended"


def test_who_finds_a_job_taken_over_amid_its_replies_lands_no_more(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = BatchService.lines

    def taken_over(service: BatchService, job: ProviderJob) -> Iterator[Mapping[str, Any]]:
        for n, line in enumerate(lines(service, job)):
            yield line
            if n == 0:
                with monkeypatch.context() as patch:
                    patch.setattr(BatchService, "lines", lines)
                    work.attempt("second")

    monkeypatch.setattr(module, "LAND_AT_ONCE", 1)
    monkeypatch.setattr(BatchService, "lines", taken_over)
    work.attempt("first")
    work.attempt("first")
    assert work.lake.frame(CALLS).collect().height == 3


@pytest.mark.parametrize(("ceiling", "asked"), [("max_calls = 2\n", 2), ("max_cost_usd = 0.003\n", 2)])
def test_a_ceiling_counts_jobs_at_half_the_price(
    tmp_path: Path, model_server: ModelServer, ceiling: str, asked: int
) -> None:
    model_server.batches.held = True
    work = Work(tmp_path, model_server, FORMS[0], ceiling)
    jobs, ended = work.attempt()  # a call may cost 0.0023 USD, half of that in a job
    assert (jobs.waiting, len(ended), [each.is_refused for each in ended]) == (asked, 3 - asked, [True] * (3 - asked))
    assert [len(ended) for _, ended in (work.attempt(), work.attempt())] == [3 - asked] * 2, "the job holds its share"
    model_server.batches.held = False
    assert len(texts(work.attempt()[1])) == asked


def test_cancelled_jobs_answer_nothing_more_and_a_refused_one_says_why(work: Work) -> None:
    jobs = work.server.batches
    jobs.held = True
    work.attempt()
    assert [job.state for job in cancel_jobs(work.context(), "run")] == ["cancelling"]
    assert [job.state for job in jobs.jobs.values()] == ["cancelled"]
    jobs.held, jobs.refuses = False, "the billing limit is reached"
    assert work.attempt()[0].waiting == 3, "what was not asked goes into a new job"
    ended = work.attempt()[1]
    assert {(each.failed, each.answered[-1].outcome.message) for each in ended} == {(True, jobs.refuses)}  # type: ignore[union-attr]
    assert (sorted(work.states()), work.server.requests()) == (["closed", "closed"], [])


def test_results_that_cannot_be_read_stay_and_are_asked_again_after_a_day(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = work.server.batches
    jobs.repeats, jobs.cuts = False, 1
    work.attempt()
    for _ in range(2):
        assert "1 line of its results cannot be read, and 1 request" in str(work.attempt()[0].message)
    monkeypatch.setattr(module, "READ_AGAIN", timedelta(0))
    Jobs(work.context(), work.plan.batched).collect()
    left = states_of(work.lake, "run", work.plan.batched).values()
    assert ([state for state, _ in left], work.states(), len(jobs.files)) == (["failed"], ["closed"], 2)


def test_an_odd_result_spoils_its_request_alone(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(name: str, answer: Any, *, late: bool) -> dict[str, Any]:
        body = answer and {**answer, "choices": [{**answer["choices"][0], "logprobs": float("-inf")}]}
        return {"custom_id": name, "response": "x" if name.endswith("0") else {"status_code": 200, "body": body}}

    monkeypatch.setattr(batch_jobs, "_openai_result", odd)
    work.attempt()
    Jobs(work.context(), work.plan.batched).collect()
    assert [state for state, _ in states_of(work.lake, "run", work.plan.batched).values()] == ["failed"]
    assert (work.lake.frame(CALLS).collect().height, work.states()) == (2, ["closed"])


@pytest.mark.parametrize("told", [["x"], {"status": "completed"}, {"data": [{"filename": "x"}], "has_more": True}])
def test_an_odd_answer_about_a_job_is_told(work: Work, monkeypatch: pytest.MonkeyPatch, told: Any) -> None:
    monkeypatch.setattr(work.server.batches, "_do", lambda *_: told if isinstance(told, dict) else tuple(told))
    assert "3 items for 1 batch job with 3 requests; hosted_vllm" in str(work.attempt()[0].message)


@pytest.mark.parametrize("work", FORMS, indirect=True)
def test_pages_without_end_are_refused(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"data": [{"id": "x", "batch_id": "x"}] * PAGE, "has_more": True, "last_id": "x", "pagination_token": "x"}
    monkeypatch.setattr(work.server.batches, "_do", lambda *_: page)
    with pytest.raises(BatchError, match="pages without end"):
        Jobs(work.context(), work.plan.batched)._service(work.model).find("job", datetime.now(UTC), 1)


def test_a_job_that_finds_the_providers_queue_full_is_submitted_later(work: Work) -> None:
    jobs = work.server.batches
    jobs.most, jobs.held = 1, True
    assert work.attempt()[0].waiting == 3, "the job is alone and too large"
    assert work.attempt()[0].waiting == 3, "one request is queued, and the others wait for it"
    said = str(work.attempt()[0].message)
    assert "waiting: 3 items for 3 batch jobs" in said
    assert "is submitted later: token_limit_exceeded: Enqueued token limit reached" in said
    jobs.held = False
    ended = [outcome for _ in range(6) for outcome in texts(work.attempt()[1])]
    assert (ended[-3:], sorted(jobs.paid.values()), work.server.requests()) == (["ok"] * 3, [1] * 3, [])
    assert (set(work.states()), jobs.files) == ({"closed"}, {})


def test_a_provider_without_jobs_is_refused_in_a_sentence(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "key-of-the-test")
    with pytest.raises(ProviderError, match=r"evalake reaches no batch jobs of deepseek, .*: leave --batch out, or"):
        check(replace(work.plan.request, models=["deepseek/deepseek-chat"], configuration_file=None))
