"""Processes that are killed, stopped or run out of memory: run, worker, Dask worker, scheduler, Prefect server, API."""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path

import httpx
import psutil

from chaos.outcome import Outcome
from evalake.contracts.tables import CALLS, RUN_ATTEMPTS, RUNS
from evalake.storage.ledger import KEY
from evalake.suites.command_guard.contract import RESULTS
from evalake.tasks.runtime.server import LEASES
from tests.e2e.clusters import Cluster
from tests.e2e.processes import PrefectStack, Process, has_ended, wait_until
from tests.integration.flows.workplace import LIMITS, Workplace
from tests.integration.server.services import IMPATIENT, Place, Service, start
from tests.servers.model_server import ModelServer

DEPLOYMENT = "evaluate/command-guard-nightly"
LATENCY = 0.6
ITEMS = 1000  # of a run
ASKERS = 2  # Dask workers
STOPPED_SECONDS = 2.0
MEMORY = Path("/sys/fs/cgroup/memory")  # of the first version of control groups
KILL, STOP, NO_MEMORY = "SIGKILL", "SIGSTOP, then SIGCONT", "out of memory"
ENDED = ("Completed", "Failed", "Crashed", "Cancelled")
GONE_SECONDS = 10.0  # after which a run without a process is set to Crashed, as the automation `silent run` does later
FAULTS = 60
OF_API = 12  # of these
WORDS = re.compile(r"\w+ \w+ \w+")
NAME_OF_AN_ERROR = re.compile(r"\b[A-Z]\w*(Error|Exception|Signal|Worker)\b")
PREFIX = re.compile(r"Flow run encountered an exception: \w+: ")  # which Prefect puts before the sentence
KINDS = (KILL, STOP, NO_MEMORY)
# In the order in which they are put in place again: a worker ends where it finds no server at its start.
TARGETS = ("Prefect server", "scheduler", "Dask worker", "worker", "run")
Blow = Mapping[str, str]  # what is done at once, to which processes


def inject(kind: str, process: psutil.Process) -> None:
    """Kill a process, stop it for a while, or let the kernel kill it because it wants more memory than there is."""
    with suppress(psutil.NoSuchProcess):  # it has ended by itself meanwhile
        if kind == STOP:
            process.suspend()
            time.sleep(STOPPED_SECONDS)
            process.resume()
        elif kind == KILL or not _out_of_memory(process):
            process.kill()


def memory_runs_out() -> bool:
    """Tell whether we may limit the memory of a process; where not, SIGKILL stands in, which the kernel would send."""
    return os.access(MEMORY, os.W_OK) and (MEMORY / "memory.limit_in_bytes").exists()


def _out_of_memory(process: psutil.Process) -> bool:
    """Put a process into a group without memory; False where it lives on, because it requested none."""
    if not memory_runs_out():
        return False
    (group := MEMORY / f"chaos-{process.pid}").mkdir(exist_ok=True)
    try:
        (group / "memory.limit_in_bytes").write_text(str(64 * 1024))
        (group / "cgroup.procs").write_text(str(process.pid))
        with suppress(psutil.TimeoutExpired):
            process.wait(10)
    except OSError:
        return has_ended(process)
    finally:
        with suppress(OSError):
            group.rmdir()
    return has_ended(process)


class Scene:
    """A run of a deployment on a Dask cluster, and every process that has a part in it."""

    def __init__(self, folder: Path, stack: PrefectStack, work: Workplace, chance: random.Random) -> None:
        self._stack, self._work, self._chance = stack, work, chance
        self._cluster = Cluster(stack, folder / "dask")
        self._names = count()
        self._askers = [self._new_asker() for _ in range(ASKERS)]
        self._worker = self._new_worker()
        self._runs = 0
        self._looked = 0.0
        self._there = time.monotonic()  # when the run last had a process, or was to be given one
        self._committed: list[tuple[int, set[str]]] = []  # at each fault: requests so far, and what was committed
        self.messages: set[str] = set()
        self.repeated = self.allowed = self.asked_again = 0
        self._begin()

    def strike(self, blow: Blow) -> None:
        """Inject faults into processes at once while calls are in flight, and replace those that were killed."""
        self._until_it_asks()
        # The run first: until it has a process, others may get another one.
        processes = {target: self._process(target) for target in reversed(TARGETS) if target in blow}
        self._allow_repeats()
        with ThreadPoolExecutor(len(blow)) as pool:
            list(pool.map(inject, [blow[target] for target in processes], processes.values()))
        committed = self._work.committed()
        self._committed.append((self._work.asked(), committed))
        for target in TARGETS:
            if blow.get(target, STOP) != STOP:
                self._replace(target)
        self._there = time.monotonic()

    def _allow_repeats(self) -> None:
        arrivals = [request.started for request in self._work.server.seen[-1000:]]
        self.allowed += self._work.server.in_flight + sum(arrivals[-1] - each < 1.0 for each in arrivals)

    def end(self) -> None:
        """Wait for the end of the last run, and count its repeated calls."""
        while self._state() != "Completed":
            self._until_it_asks(whole=True)
        for asked, committed in self._committed:
            self.asked_again += sum(each.content in committed for each in self._work.server.seen[asked:])
        contents = [each.content for each in self._work.server.seen]
        self.repeated = len(contents) - len(set(contents))

    @property
    def items(self) -> int:
        """How many items the runs have, all in all."""
        return self._runs * ITEMS

    def _begin(self) -> None:
        dataset = self._work.dataset(ITEMS, name=f"part {self._runs}", first=self._runs * ITEMS)
        self._runs += 1
        self._flow_run = self._stack.run(DEPLOYMENT, self._work.parameters(dataset))

    def _until_it_asks(self, *, whole: bool = False) -> None:
        """Wait for some more calls, or the end; a run that failed is retried, a completed one followed by the next."""
        target = self._work.asked() + self._chance.randrange(3, 20)
        state = wait_until(lambda: (not whole and self._work.asked() >= target) or self._stopped(), "calls")
        if state == "Completed" and not whole:
            self._begin()
            self._until_it_asks()
        elif isinstance(state, str) and state != "Completed":
            self.messages.add(str(self._stack.get(f"/flow_runs/{self._flow_run}")["state"]["message"]))
            self._allow_repeats()  # its process may still be there, with calls on their way
            self._stack.set_state(self._flow_run, "SCHEDULED", "AwaitingRetry")
            self._until_it_asks(whole=whole)

    def _state(self) -> str:
        with suppress(httpx.HTTPError):
            return str(self._stack.get(f"/flow_runs/{self._flow_run}")["state_name"])
        return ""

    def _stopped(self) -> str | None:
        """Look up the state in which the run ended; None while it goes on, or within a second of the last look-up."""
        if time.monotonic() < self._looked + 1.0:
            return None
        self._keep_up(state := self._state())
        self._looked = time.monotonic()
        return state if state in ENDED else None

    def _keep_up(self, state: str) -> None:
        """Do what an installation does: restart an ended worker, and set a run without a process to Crashed.

        A worker ends where it finds no Prefect server at its start. The automation `silent run` waits for minutes, we
        do not.
        """
        if self._worker.popen.poll() is not None:
            self._worker = self._new_worker()
        if state not in ("Pending", "Running") or self._run() is not None:
            self._there = time.monotonic()
        elif time.monotonic() > self._there + GONE_SECONDS:
            self._stack.set_state(self._flow_run, "CRASHED", "Crashed", "The run gave no sign of life any more.")

    def _process(self, target: str) -> psutil.Process:
        if target == "run":
            while (process := self._run()) is None:
                self._until_it_asks()
            return process
        found = {"worker": self._worker, "Dask worker": self._askers[0], "scheduler": self._cluster.scheduler}
        return psutil.Process((found.get(target) or self._stack.server).popen.pid)

    def _run(self) -> psutil.Process | None:
        """Find the process of the run's attempt, None while there is none: not the one that awaits its end."""
        of_run = [process for process in psutil.process_iter() if _flow_run_of(process) == self._flow_run]
        return max(of_run, key=psutil.Process.create_time, default=None)

    def _replace(self, target: str) -> None:
        if target == "worker":
            self._worker.kill()
            self._worker = self._new_worker()
        elif target == "Dask worker":
            self._askers[0].kill()
            self._askers = [*self._askers[1:], self._new_asker()]
        elif target == "scheduler":
            self._cluster.scheduler.kill()
            self._cluster.start_scheduler()
            self._allow_repeats()
            for asker in self._askers:
                asker.kill()  # one that lost its scheduler ends by itself, later
            self._askers = [self._new_asker() for _ in self._askers]
        elif target == "Prefect server":
            self._stack.restart_server()

    def _new_worker(self) -> Process:
        return self._stack.worker(**self._cluster.environment)

    def _new_asker(self) -> Process:
        return self._cluster.start_worker(f"asker-{next(self._names)}")


def _flow_run_of(process: psutil.Process) -> str | None:
    with suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:
            found: str | None = process.environ().get("PREFECT__FLOW_RUN_ID")
            return found
    return None


def campaign(folder: Path, seed: int, seconds: float) -> Iterator[Outcome]:
    """Inject 60 faults, or as many as the time allows: each kind into each process at least once."""
    chance, until = random.Random(seed), time.monotonic() + seconds
    blows = list(drawn(chance, FAULTS - OF_API))
    with ThreadPoolExecutor() as beside:  # beside the runs, as services mostly wait
        services = beside.submit(lambda: list(of_services(folder / "services", OF_API, until)))
        yield from of_runs(folder / "runs", chance, blows, until)
        yield from services.result()
    for group in MEMORY.glob("chaos-*"):  # of processes that ended late
        with suppress(OSError):
            group.rmdir()


def drawn(chance: random.Random, faults: int) -> Iterator[Blow]:
    """Draw `faults` faults, of which one to four hit at once: each kind hits each process, all equally often."""
    left = faults
    while left:
        kinds = {target: chance.sample(KINDS, len(KINDS)) for target in TARGETS}
        for turn in range(len(KINDS)):
            order, cut = chance.sample(TARGETS, len(TARGETS)), chance.randrange(1, len(TARGETS))
            for part in (order[:cut], order[cut:]):
                if blow := {target: kinds[target][turn] for target in islice(part, left)}:
                    left -= len(blow)
                    yield blow


def of_runs(folder: Path, chance: random.Random, blows: Iterable[Blow], until: float) -> Iterator[Outcome]:
    """Inject the drawn faults while runs are under way, each kind into each process even if the time is over."""
    injected = Counter[tuple[str, str]]()  # which process, and what was done to it
    (folder / "work").mkdir(parents=True)
    with ModelServer(keep_bodies=False) as server, _serving(folder / "prefect") as stack:
        work = Workplace(folder / "work", server)
        work.configure(batch_size=50, limits=LIMITS)
        server.rule(reply='{"action": "BLOCK"}', latency=LATENCY)
        try:
            scene = Scene(folder, stack, work, chance)
            for blow in blows:
                if injected.total() >= len(KINDS) * len(TARGETS) and time.monotonic() > until:
                    break
                scene.strike(blow)
                injected.update(blow.items())
            scene.end()
            broken = _wrong(work, scene)
            held = (
                f"{scene.items} result rows once each, no committed call asked again, {scene.repeated} calls repeated "
                f"of {scene.allowed} that were in flight or within a second"
            )
        except AssertionError as error:  # something was waited for in vain
            held, broken = "", [str(error)[:300]]
    for (target, kind), times in sorted(injected.items()):
        yield Outcome(f"{target}: {_name(kind)}", times, held, "; ".join(broken))


@contextmanager
def _serving(folder: Path) -> Iterator[PrefectStack]:
    """Run a stack whose server's log may hold errors, because the server is killed."""
    stack = PrefectStack(folder, LEASES)
    try:
        stack.__enter__().deploy(DEPLOYMENT.partition("/")[2])
        yield stack
    finally:
        stack.__exit__(AssertionError, AssertionError(), None)
        for process in psutil.process_iter():  # runs whose worker was killed
            with suppress(psutil.Error):
                if process.environ().get("PREFECT_API_URL") == stack.url:
                    process.kill()


def _name(kind: str) -> str:
    return f"{kind} (the kernel refuses: SIGKILL)" if kind == NO_MEMORY and not memory_runs_out() else kind


def _wrong(work: Workplace, scene: Scene) -> list[str]:
    broken = []
    results, calls = work.rows(RESULTS).select(RESULTS.key), work.rows(CALLS).select(KEY)
    if not results.height == results.n_unique() == scene.items:
        broken.append(f"{results.height} result rows, {results.n_unique()} distinct, of {scene.items}")
    # What was in flight may be answered twice: the first reply to a call counts, and maintenance takes the others away.
    if calls.n_unique() != scene.items or calls.height - scene.items > scene.repeated:
        broken.append(f"{calls.height} replies in the ledger, {calls.n_unique()} distinct, of {scene.items}")
    if scene.asked_again:
        broken.append(f"{scene.asked_again} committed calls asked again")
    if scene.repeated > scene.allowed:
        broken.append(f"{scene.repeated} calls repeated, {scene.allowed} were in flight or within a second")
    kept = (work.rows(contract)["message"].drop_nulls() for contract in (RUNS, RUN_ATTEMPTS))
    told = scene.messages.union(*kept)
    return broken + [f"not a sentence: {each!r}" for each in told if not _is_sentence(each)]


def _is_sentence(told: str) -> bool:
    told = PREFIX.sub("", told, count=1)
    return WORDS.search(told) is not None and not NAME_OF_AN_ERROR.search(told)


def of_services(folder: Path, times: int, until: float) -> Iterator[Outcome]:
    """Inject faults into the scoring service, whose own Prefect server and runner end with it."""
    alone = PrefectStack(folder / "alone")
    alone.environment["PREFECT_API_URL"] = ""
    (folder / "place").mkdir()
    injected, broken = Counter[str](), list[str]()
    with ModelServer() as judge:
        place = Place(folder / "place", judge, IMPATIENT)
        sessions = [f"session-{number}" for number in range(times)]
        place.write(*sessions)
        place.answer(latency=1.0)
        service, held = start(alone, place), ""
        try:
            for number, session in enumerate(sessions):
                if number >= 3 and time.monotonic() > until:
                    break
                kind = (KILL, STOP, NO_MEMORY)[number % 3]
                asked = len(judge.requests())
                service.ask(session)
                wait_until(lambda asked=asked: len(judge.requests()) > asked, "a question to the judge")  # type: ignore[misc]
                inject(kind, psutil.Process(service.process.popen.pid))
                injected[kind] += 1
                if kind != STOP:
                    service.kill()
                    service = start(alone, place)
            for session in sessions[: injected.total()]:
                broken += _wrong_with(service, place, session)
            held = f"{injected.total()} sessions scored once each, of {len(judge.requests())} questions to the judge"
        except AssertionError as error:  # something was waited for in vain
            broken.append(str(error)[:300])
        finally:
            service.stop()
    for kind, count_of in sorted(injected.items()):
        yield Outcome(f"API: {_name(kind)}", count_of, held, "; ".join(broken))


def _wrong_with(service: Service, place: Place, session: str) -> Iterator[str]:
    """Yield what is wrong with a session's score; it is asked for again where it failed as the service was killed."""
    score = service.wait_for(session, "completed", "failed")
    if score["status"] == "failed":
        if not _is_sentence(score["error_message"] or ""):
            yield f"not a sentence: {score['error_message']!r}"
        service.ask(session, force=True)
        service.wait_for(session, "completed")
    if [row["status"] for row in place.scores(session)].count("completed") != 1:
        yield f"{session} was scored {place.scores(session)}"
