"""Jobs: requests that the ledger lacks go to batch jobs of their providers, and their replies land from there.

A run collects what its jobs have answered, plans as always, and puts what is still lacking into new jobs. A job has its
row before it is submitted, and the provider's job has our job's id. So a run that was killed anywhere is taken up: what
was planned is submitted; what may have been submitted is looked for at the provider first; what was landed is not
landed again.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from uuid import uuid4

import polars as pl

from evalake.contracts.tables import BATCH_JOBS, RUN_RESERVATIONS, RUNS
from evalake.core.errors import ConfigurationError
from evalake.core.redaction import KnownKeys
from evalake.models.batches import BatchError, BatchService, ProviderJob, Result, batch_service
from evalake.models.cost import batch_share, beyond_context, most_usd
from evalake.models.endpoints import endpoint_of
from evalake.models.request import Failure, Request, parameters_of
from evalake.models.routes import find_route
from evalake.reports.wording import count_of
from evalake.storage.batch_jobs import (
    AWAITED,
    OPEN,
    UNDER_WAY,
    Job,
    JobTakenError,
    advance,
    begin,
    end_requests,
    jobs,
    planned,
    put_off,
    requests_of,
    require_newest,
    states_of,
)
from evalake.storage.ledger import Key, key_of, newest_index, reply_lengths
from evalake.storage.reservations import Amount, BudgetState, Reservation, reserve
from evalake.suites.registry import baselines
from evalake.tasks.converse import Conversation, call_row, given_up, next_request, refused
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import ledger_writer
from evalake.tasks.runtime.runs import LOST_AFTER
from evalake.tasks.runtime.server import read_secret

SETTLE = timedelta(minutes=2)
"""A job that the provider does not list so long after its submission was cut off, was not submitted."""
READ_AGAIN = timedelta(days=2)
"""For so long after its submission, and most end within a day, unreadable results are read again."""
LARGEST_JOB = 10_000  # requests, whatever its provider takes: they are in memory together while it is submitted
LAND_AT_ONCE = 1000  # replies of a job
_HOLDER = "job "  # begins the name of a job's row in RUN_RESERVATIONS

logger = logging.getLogger("evalake.jobs")


@dataclass
class _Asked:
    """A request that goes into a job, for all conversations that need it."""

    row: dict[str, Any]
    most_usd: float
    conversations: list[Conversation]


@dataclass
class _Pending:
    """Requests to one model that go into its next job."""

    asked: dict[Key, _Asked] = field(default_factory=dict)
    size: int = 0


class Jobs:
    """The batch jobs of one run, or of other runs that ask the same."""

    def __init__(self, context: RunContext, wanted: frozenset[str]) -> None:
        """Take the real models for which new jobs are `wanted`; `context.batched` has those with open jobs, too."""
        self._context, self._wanted, self._lake = context, wanted, context.lake
        self._states: dict[Key, tuple[str, str | None]] = {}
        self._pending: dict[str, _Pending] = {}
        self._services: dict[str, BatchService] = {}
        self.notes: list[str] = []
        """What a provider did not do now, in words."""
        self._longest: Mapping[str, int] | None = None
        self._most_requests: dict[str, int] = {}  # of a job, where the provider did not take as many
        self.waiting = 0
        """Items that wait for a job."""

    def collect(self) -> None:
        """Go on with every open job of the run, and with those of other runs that have ended."""
        running = self._running()
        for job in jobs(self._lake, pl.col("state").is_in(OPEN), pl.col("model").is_in(sorted(self._context.batched))):
            is_ours = job.holder_run == self._context.run_id or job.holder_run not in running
            if is_ours and endpoint_of(job.model, self._context.configuration).name == job.endpoint:
                self._try(job)
        self._release()
        self._states = states_of(self._lake, self._context.run_id, self._context.batched)

    def route(self, conversations: Sequence[Conversation]) -> tuple[list[Conversation], list[Conversation]]:
        """Send the next request of each conversation where it belongs.

        Returns:
            The conversations to call now, as no job of theirs is wanted or it failed, and those that have ended. All
            others wait for a job.
        """
        to_call, ended = [], []
        for each in conversations:
            state, message = self._states.get(each.next_key, (None, None))
            if state == "refused":
                ended.append(_given_up(each, Failure("bad_request", message or "", 1)))
            elif state == "failed" or (state is None and each.next_model not in self._wanted):
                each.is_urgent = True
                to_call.append(each)
            else:
                self.waiting += 1
                if state is None:
                    ended += self._add(each)
                elif (pending := self._pending.get(each.next_model)) and each.next_key in pending.asked:
                    pending.asked[each.next_key].conversations.append(each)
        return to_call, ended

    def finish(self) -> list[Conversation]:
        """Submit the last jobs; returns conversations that have ended meanwhile."""
        ended = [each for model in sorted(self._pending) for each in self._flush(model)]
        for service in self._services.values():
            service.close()
        return ended

    @property
    def message(self) -> str | None:
        """What the run waits for, in words; None where it waits for nothing."""
        if not self.waiting:
            return None
        awaited = jobs(self._lake, pl.col("state").is_in(AWAITED), pl.col("model").is_in(sorted(self._context.batched)))
        ends = [job.expires_at for job in awaited if job.expires_at]
        until = f" until {max(ends):%Y-%m-%d %H:%M} UTC" if ends else ""
        requests = sum(job.requests for job in awaited)
        what = (count_of(self.waiting, "item"), count_of(len(awaited), "batch job"), count_of(requests, "request"))
        return "; ".join(["waiting: {} for {} with {}".format(*what) + until, *self.notes])

    def _add(self, conversation: Conversation) -> list[Conversation]:
        """Put the next request of a conversation into the next job; returns conversations that end by that."""
        request, context = next_request(self._context, conversation), self._context
        assert request is not None  # it is unanswered
        options = context.configuration.model(request.model)
        if (too_long := beyond_context(request, options.context)) is not None:
            self.waiting -= 1
            return [_given_up(conversation, Failure("context_length", too_long, 0))]
        key, text = conversation.next_key, request.canonical.decode()
        row = {**key._asdict(), "reply_revision": conversation.next_revision, "request": text, "state": "open"}
        price = 0.0
        if context.ceiling.usd is not None:
            most = most_usd(request, self._longest_reply(request.model), options.price) or 0.0
            price = most * batch_share(request.model, options.price)
        pending = self._pending.setdefault(request.model, _Pending())
        pending.asked[key] = _Asked({**row, "message": None}, price, [conversation])
        pending.size += len(text.encode())
        self._states[key] = ("open", None)
        service = self._service(request.model)
        most = self._most_requests.get(request.model, min(service.most_requests, LARGEST_JOB))
        is_full = len(pending.asked) >= most or pending.size >= service.most_bytes
        return self._flush(request.model) if is_full else []

    def _flush(self, model: str) -> list[Conversation]:
        """Submit the waiting requests to a model as one job, within the ceiling; returns ended conversations."""
        pending, job_id = self._pending.pop(model), uuid4().hex[:12]
        fits = self._reserve(job_id, [each.most_usd for each in pending.asked.values()])
        asked, beyond = list(pending.asked)[:fits], list(pending.asked)[fits:]
        ended = [refused(each) for key in beyond for each in pending.asked[key].conversations]
        for key in beyond:
            del self._states[key]  # no job has it
        if asked:
            rows = [{**pending.asked[key].row, "request_id": f"{job_id}-{n}"} for n, key in enumerate(asked)]
            job = planned(job_id, self._context.run_id, model, asked[0].endpoint, len(rows))
            begin(self._lake, job, rows)
            job = self._try(job)
            if job.state == "closed" and job.provider_id is None:  # refused
                self._states |= dict.fromkeys(asked, ("refused", job.message))
                failure = Failure("bad_request", job.message or "", 1)
                ended += [_given_up(each, failure) for key in asked for each in pending.asked[key].conversations]
        self.waiting -= len(ended)
        return ended

    def cancel(self, job: Job) -> Job:
        """Cancel one job; what it has answered is landed later."""
        try:
            service = self._service(job.model)
            job = self._find(job, service) if job.state == "submitting" else job
            if job.provider_id is not None:
                service.cancel(job.provider_id)
            job = advance(self._lake, job, state="cancelling")  # by which its run waits no longer
            return job if job.provider_id else self._go_on(job)
        except (BatchError, JobTakenError) as error:
            if isinstance(error, BatchError) and error.is_gone:
                return self._refuse(advance(self._lake, job, state="cancelling"), error)
            logger.warning("batch job %s was not cancelled: %s", job.job_id, error)
            return job

    def has_news(self, job: Job) -> bool:
        """Tell whether there is something to do about a job but to wait.

        Raises EvalakeError where its provider cannot be asked.
        """
        require_its_endpoint(self._context, job)
        return job.provider_id is None or self._service(job.model).look(job.provider_id).ended

    # One job, from where it is.

    def _try(self, job: Job) -> Job:
        """Go on with a job; where its provider does not answer, note it for the run's message."""
        try:
            return self._go_on(job)
        except JobTakenError:
            return job
        except BatchError as error:
            logger.warning("batch job %s: %s", job.job_id, error)
            self.notes.append(str(error))
            return job

    def _go_on(self, job: Job) -> Job:
        service = self._service(job.model)
        if job.state == "planned":
            return self._submit(job, service)
        if job.state == "submitting":
            job = self._find(job, service)
        if job.state == "cancelling" and job.provider_id is None:
            return self._refuse(job, BatchError("cancelled before its submission", is_refusal=True))
        if job.state in ("submitted", "cancelling") and job.provider_id:
            at_provider = service.look(job.provider_id)
            told = {"provider_state": at_provider.state, "done": at_provider.done, "failed": at_provider.failed}
            told |= {"expires_at": at_provider.expires_at, "message": None}
            if not at_provider.ended:
                changed = any(getattr(job, name) != value for name, value in told.items())
                return advance(self._lake, job, **told) if changed else job
            job = advance(self._lake, job, **told, holder_run=self._context.run_id)  # so that nobody else lands them
            job = self._land(job, at_provider, service)
        if job.state == "collected":
            job = self._close(job, service)
        return job

    def _submit(self, job: Job, service: BatchService) -> Job:
        requests = [(row["request_id"], _request(row)) for row in requests_of(self._lake, job.job_id)]
        try:
            file = service.upload(job.job_id, requests)
        except BatchError as error:
            return self._refuse(job, error)
        return self._send(job, service, requests, file)

    def _send(self, job: Job, service: BatchService, requests: Sequence[tuple[str, Request]], file: str | None) -> Job:
        """Submit a job once its row says that this may have happened."""
        job = advance(self._lake, job, state="submitting", input_file=file, submitted_at=datetime.now(UTC))
        try:
            created = service.submit(job.job_id, file, requests)
        except BatchError as error:
            return self._refuse(job, error)
        return self._submitted(job, created)

    def _submitted(self, job: Job, created: ProviderJob) -> Job:
        told = {"provider_id": created.provider_id, "provider_state": created.state, "expires_at": created.expires_at}
        return advance(self._lake, job, state="submitted", message=None, **told)

    def _find(self, job: Job, service: BatchService) -> Job:
        """Take up a job whose submission was cut off: the provider may have it or not."""
        assert job.submitted_at is not None
        if (found := service.find(job.job_id, job.submitted_at, job.requests)) is not None:
            return self._submitted(job, found)
        if datetime.now(UTC) - job.submitted_at < SETTLE:
            raise BatchError(f"whether the batch job {job.job_id} was submitted is known in two minutes")
        requests = [(row["request_id"], _request(row)) for row in requests_of(self._lake, job.job_id)]
        return self._send(job, service, requests, job.input_file)

    def _refuse(self, job: Job, error: BatchError) -> Job:
        """End a job that its provider refuses; any other error is raised, and the job stays as it is."""
        if not error.is_refusal:
            raise error
        job = advance(self._lake, job, state="collected", message=str(error))  # first: another process may submit it
        self._end({**row, "state": "refused", "message": str(error)} for row in requests_of(self._lake, job.job_id))
        return self._close(job, self._service(job.model))

    def _land(self, job: Job, at_provider: ProviderJob, service: BatchService) -> Job:
        """Land the replies of a job that has ended, each once, and note what became of each request."""
        if at_provider.is_for_now and self._waits(job):
            self.notes.append(f"batch job {job.job_id} is submitted later: {at_provider.refused}")
            return put_off(self._lake, job, at_provider.refused)
        open_requests = {row["request_id"]: row for row in requests_of(self._lake, job.job_id)}
        if at_provider.refused is not None and not at_provider.is_for_now:
            self._end({**row, "state": "refused", "message": at_provider.refused} for row in open_requests.values())
            return advance(self._lake, job, state="collected", failed=len(open_requests), message=at_provider.refused)
        lines, failed, unreadable = iter(service.lines(at_provider)), dict[str, Result](), 0
        while chunk := list(islice(lines, LAND_AT_ONCE)):
            results = []
            unreadable += chunk.count({})
            for line in chunk:
                if (row := open_requests.get(name := str(line.get("custom_id")))) is None:
                    continue  # it came before
                if (result := service.result(line, _request(row))).reply is None:
                    failed[name] = result  # unless another line answers it
                else:
                    results.append((open_requests.pop(name), result))
            self._land_chunk(job, results)
        left = sorted(failed.keys() & open_requests.keys())
        self._land_chunk(job, [(open_requests.pop(name), failed[name]) for name in left])
        if unreadable and open_requests:
            return self._leave_results(job, unreadable, list(open_requests.values()))
        self._end({**row, "state": "expired"} for row in open_requests.values())
        return advance(self._lake, job, state="collected")

    def _leave_results(self, job: Job, unreadable: int, rows: Sequence[Mapping[str, Any]]) -> Job:
        """End a job whose paid results cannot all be read, and leave them at the provider.

        Raises BatchError for a day, so that they are read again before anything is asked again.
        """
        said = f"{count_of(unreadable, 'line')} of its results cannot be read, and {count_of(len(rows), 'request')} "
        said += f"may be answered there: see {job.provider_id} at the provider, which keeps its files"
        if job.submitted_at is not None and datetime.now(UTC) - job.submitted_at < READ_AGAIN:
            raise BatchError(f"batch job {job.job_id} is read again for two days after its submission: {said}")
        self._end({**row, "state": "failed", "message": said} for row in rows)
        return advance(self._lake, job, state="closed", message=said)

    def _waits(self, job: Job) -> bool:
        """Tell whether a job refused for now waits for others; alone it is too large, and split into smaller ones."""
        if job.state == "cancelling":
            return False
        ours = (pl.col("model") == job.model, pl.col("job_id") != job.job_id, pl.col("state") == "submitted")
        if job.requests == 1 or jobs(self._lake, *ours):
            return True
        self._most_requests[job.model] = job.requests // 2
        return False

    def _land_chunk(self, job: Job, results: Sequence[tuple[dict[str, Any], Result]]) -> None:
        require_newest(self._lake, job)
        *_, index = newest_index(self._lake)
        landed = index.fetch([key_of(row) for row, _ in results], job.run_id)  # by a process that was killed here
        writer = ledger_writer(self._lake)
        for row, result in results:
            key = key_of(row)
            if result.reply is not None and landed.get(key, {}).get("run_id") != job.run_id:
                asked = {"revision": row["reply_revision"], "origin": "call", "run_id": job.run_id}
                writer.put(call_row(result.reply, key, job.model, row["request"], **asked))
        writer.flush()
        self._end({**row, "state": result.state, "message": result.message} for row, result in results)

    def _end(self, rows: Iterator[dict[str, Any]]) -> None:
        if ended := [{**row, "request": None} for row in rows]:
            end_requests(self._lake, ended)

    def _close(self, job: Job, service: BatchService) -> Job:
        """Delete what the provider keeps of a job."""
        service.delete(job.provider_id, job.input_file)
        return advance(self._lake, job, state="closed")

    # Ceilings: a job counts as spending of its run, at its worst price, until its replies are in the ledger.

    def _reserve(self, job_id: str, prices: Sequence[float]) -> int:
        """Count a job as spending of the run; returns how many of its requests the ceiling lets."""
        ceiling, fits = self._context.ceiling, len(prices)
        if not ceiling:
            return fits

        def decide(state: BudgetState) -> Reservation:
            nonlocal fits
            taken, fits = Amount(), 0
            free = ceiling.amount - ceiling.of(state.spent) - state.held
            for price in prices:
                if not (following := taken + ceiling.of(Amount(price, 1))).within(free):
                    break
                taken, fits = following, fits + 1
            return Reservation(Amount(), taken)

        reserve(self._lake, self._context.run_id, f"{_HOLDER}{job_id}", decide)
        return fits

    def _release(self) -> None:
        """Count jobs of the run no longer whose replies are in the ledger, or that never came to be."""
        if not self._context.ceiling:
            return
        ours = pl.col("run_id") == self._context.run_id
        held = pl.col("holder").str.starts_with(_HOLDER) & ((pl.col("outside_calls") > 0) | (pl.col("outside_usd") > 0))
        holders = self._lake.frame(RUN_RESERVATIONS).filter(ours, held).select("holder").collect()["holder"]
        under_way = jobs(self._lake, ours, pl.col("state").is_in(UNDER_WAY))
        running = {f"{_HOLDER}{job.job_id}" for job in under_way}
        for holder in sorted({*holders} - running):
            reserve(self._lake, self._context.run_id, holder, lambda _: Reservation(Amount(), Amount()))

    def _longest_reply(self, model: str) -> int | None:
        if self._longest is None:
            self._longest = {name: known.longest for name, known in reply_lengths(self._lake).items()}
        return self._longest.get(model)

    def _running(self) -> set[str]:
        """List the runs whose processes are alive."""
        alive = (pl.col("state") == "running") & (pl.col("alive_at") >= datetime.now(UTC) - LOST_AFTER)
        return set(self._lake.frame(RUNS).filter(alive).select("run_id").collect()["run_id"])

    def _service(self, model: str) -> BatchService:
        if model not in self._services:
            route = find_route(model, self._context.configuration, read_secret, baselines())
            self._services[model] = batch_service(route, KnownKeys())
        return self._services[model]


def cancel_jobs(context: RunContext, run_id: str) -> list[Job]:
    """Cancel the awaited jobs of a run; returns them as they are then.

    What a job has answered stays at its provider until a later run of the model, or the flow collect, lands it. A
    provider that cannot be asked is logged, and its job is returned as it was.
    """
    if not context.lake.exists(BATCH_JOBS):
        return []
    work = Jobs(context, frozenset())
    return [work.cancel(job) for job in jobs(context.lake, pl.col("run_id") == run_id, pl.col("state").is_in(AWAITED))]


def require_its_endpoint(context: RunContext, job: Job) -> None:
    """Raise ConfigurationError where a job's model has another endpoint now, which does not know the job."""
    if (now := endpoint_of(job.model, context.configuration).name) != job.endpoint:
        raise ConfigurationError(
            f"the batch job {job.job_id} lies at {job.endpoint}, and the configuration has {job.model} at {now}: "
            "name the job's endpoint again, or end the job by `evalake cancel RUN`"
        )


def have_news(context: RunContext, run: Mapping[str, Any]) -> bool:
    """Tell whether a job that a run of RUNS awaits has ended at its provider or was landed, or was not submitted yet.

    Raises EvalakeError where no job tells, and a provider cannot be asked.
    """
    awaited = jobs(context.lake, pl.col("run_id") == run["run_id"], pl.col("state").is_in(OPEN))
    if not awaited:  # the run waits for open jobs of other runs
        asked = {context.configuration.real_model(name) for name in (*run["models"], *run["judges"])}
        awaited = jobs(context.lake, pl.col("model").is_in(sorted(asked)), pl.col("state").is_in(AWAITED))
    return not awaited or any(map(Jobs(context, frozenset()).has_news, awaited))


def _given_up(conversation: Conversation, failure: Failure) -> Conversation:
    conversation.answered.append(given_up(conversation, failure))
    return conversation


def _request(row: Mapping[str, Any]) -> Request:
    """Build a request from its canonical JSON."""
    asked = json.loads(row["request"])
    return Request(asked["model"], tuple(asked["messages"]), parameters_of(asked), asked.get("revision"))
