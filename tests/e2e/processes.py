"""Real processes for end-to-end tests: a Prefect server and workers, ended by the tests that start them."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import httpx
import psutil
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_random

from evalake.server.local.server import is_migrated
from evalake.server.local.supervisor import PATIENCE
from tests.servers.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PYTHON = (sys.executable, "-m")
PATIENCE_SECONDS = 600.0  # guards against a hang; a busy machine stalls for minutes
EVERY_SECONDS = 0.1
# A look at a flow run costs the server six milliseconds of processor: ten a second, for as long as tests wait, add up.
EVERY_SECONDS_OF_RUNS = 1.0
RECORD = re.compile(r"^(?=\d\d:\d\d:\d\d\.\d{3} \|)", re.MULTILINE)  # of the log, with the traceback below it
ERROR = re.compile(r"\b(ERROR|CRITICAL)\b|Traceback|^\w+Error: ", re.MULTILINE)
HARMLESS = (
    # SQLite lets only one of two transactions go on that read and then write, at once, however patient they are.
    # Prefect answers 503 or tries again, so a busy machine has such lines in its log and no harm done.
    "database is locked",
    # Prefect holds a trigger by a weak reference to its automation (3.8.8, events/schemas/automations.py). One that is
    # replaced while it is looked at is looked at again five seconds later.
    "Trigger._automation has been garbage collected",
    # Prefect records task runs a moment later. A test of maintenance deletes a flow run before that.
    "FOREIGN KEY constraint failed\n[SQL: INSERT INTO task_run (flow_run_id",
)
PLAIN = False  # no certificates are loaded for http, which would take 20 ms of processor at each request
DATABASE_VARIABLE = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
ENDS = ("Completed", "Failed", "Crashed", "Cancelled")  # of a flow run


def wait_until(
    true: Callable[[], Any], what: str, seconds: float = PATIENCE_SECONDS, every: float = EVERY_SECONDS
) -> Any:
    """Poll until the condition gives something true; fails loudly when it takes too long."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < deadline:
        if found := true():
            return found
        pause.wait(every)
    raise AssertionError(f"{what} did not happen within {seconds:g} seconds")


def have_ended(processes: Iterable[psutil.Process], seconds: float = PATIENCE_SECONDS) -> bool:
    """Wait until processes have ended."""
    there = list(processes)
    return bool(wait_until(lambda: all(map(has_ended, there)), f"the end of {there}", seconds))


def has_ended(process: psutil.Process) -> bool:
    """Whether a process has ended; what only waits to be removed from the table, which a busy init delays, has."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def command_lines(processes: Iterable[psutil.Process]) -> list[str]:
    """The command lines of those processes that have not ended meanwhile."""
    lines = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            lines.append(" ".join(process.cmdline()))
    return lines


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """What is in each file below a folder; one that a server removes meanwhile is left out."""
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()


def require_no_errors(log: Path) -> None:
    """Fail where a server has logged an error: what it cannot do any more, it says nowhere else."""
    records = RECORD.split(log.read_text(errors="replace"))
    errors = [
        record for record in records if ERROR.search(record) and not any(harmless in record for harmless in HARMLESS)
    ]
    assert not errors, f"{log} holds errors:\n{''.join(errors)[-8000:]}"


# What Prefect's own server does at each start, and need not do with a copy of a migrated database
NOT_AT_START = {"PREFECT_SERVER_DATABASE_MIGRATE_ON_START": "false", "PREFECT_API_BLOCKS_REGISTER_ON_START": "false"}
# … and looks for every few seconds, where nothing is scheduled and no worker comes
QUIET = {
    f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "false"
    for service in (*("SCHEDULER", "LATE_RUNS", "FOREMAN"), *("CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "TRIGGERS"))
}


class BusyError(Exception):
    """The Prefect server asks to come again later."""


class Process:
    """A child process with its own environment, whose output goes to a file."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self.command, self.log = command, log
        with log.open("ab") as file:
            whole = {**os.environ, **environment}
            self.popen = subprocess.Popen([*PYTHON, *command], cwd=ROOT, env=whole, stdout=file, stderr=file)

    def kill(self) -> None:
        """SIGKILL: no chance to tidy up."""
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait()

    def kill_all(self) -> None:
        """SIGKILL to the process and to all that it has started, as when the machine goes down."""
        started = psutil.Process(self.popen.pid).children(recursive=True)
        self.kill()
        for process in started:
            with suppress(psutil.NoSuchProcess):  # it has ended by itself meanwhile
                process.kill()
        psutil.wait_procs(started)

    def stop(self, seconds: float = 20) -> None:
        """End it politely, and by force where that does not help: a worker with a run takes its time."""
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()


class PrefectStack:
    """A Prefect server and, where wanted, process workers of the pool `evalake`."""

    def __init__(self, folder: Path, extra: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        temporary = folder / "temporary"  # killed workers leave folders behind
        temporary.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{(port := free_port())}/api"
        self.environment = {
            "PREFECT_API_URL": self.url,
            "PREFECT_HOME": str(folder / "home"),
            "PREFECT_WORKER_QUERY_SECONDS": "4",  # each time costs its server 30 ms of processor
            "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60",  # as on a busy machine a database takes
            "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "EVALAKE_HOME": str(ROOT),
            "EVALAKE_REPORTS": str(folder / "reports"),
            "TMPDIR": str(temporary),
            **(extra or {}),
        }
        self._port = port
        self._processes: list[Process] = []
        self._started = count()
        self._server_logs: list[Path] = []

    def __enter__(self) -> Self:
        try:
            if DATABASE_VARIABLE not in self.environment:  # a copy spares each server seconds of migrations
                self.environment |= NOT_AT_START if is_migrated(self.folder / "home" / "prefect.db") else {}
            self._serve()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in reversed(self._processes):  # workers before the server
            process.stop()
        if error is None:
            for log in self._server_logs:
                require_no_errors(log)

    @property
    def server(self) -> Process:
        """The process of the Prefect server."""
        return self._processes[0]

    def restart_server(self) -> None:
        """End the server as a reboot does, and start it again, with the same database and address."""
        self._processes[0].kill()
        self._processes[0] = self._serve()
        self._processes.pop()

    def server_log(self) -> str:
        """What the server has said so far, at each of its starts."""
        return "".join(log.read_text(errors="replace") for log in self._server_logs)

    def _serve(self) -> Process:
        server = self.start("prefect", "server", "start", "--host", "127.0.0.1", "--port", str(self._port))
        self._server_logs.append(server.log)
        wait_until(lambda: self._healthy(server), "the start of the Prefect server")
        return server

    def start(self, *command: str, **environment: str) -> Process:
        """Start a Python module of the environment as a process of this stack."""
        log = self.folder / f"{next(self._started)}-{command[0]}.log"
        process = Process(list(command), log, {**self.environment, **environment})
        self._processes.append(process)
        return process

    def call(self, *command: str) -> str:
        """Run a Python module to its end, and return what it printed."""
        with self.open(*command) as process:
            out, err = process.communicate()
        assert process.returncode == 0, out + err
        return str(out)

    def open(self, *command: str, **environment: str) -> "subprocess.Popen[str]":
        """Start a Python module whose output the test reads, and which it ends itself."""
        whole = {**os.environ, **PATIENCE, **self.environment, **environment}
        pipe = subprocess.PIPE
        return subprocess.Popen([*PYTHON, *command], cwd=ROOT, env=whole, stdout=pipe, stderr=pipe, text=True)

    def deploy(self, *names: str) -> None:
        """Create the pool and deploy everything in prefect.yaml, or what is named, without its schedules running."""
        from prefect.workers.process import ProcessWorker  # a second, which who imports this module need not wait for

        template = ProcessWorker.get_default_base_job_template()  # as `prefect work-pool create` does, which takes 2 s
        self.post("/work_pools/", {"name": "evalake", "type": "process", "base_job_template": template})
        which = [word for name in names for word in ("--name", name)]
        self.call("prefect", "--no-prompt", "deploy", *(which or ["--all"]))
        for deployment in self.post("/deployments/filter", {}):
            self.post(f"/deployments/{deployment['id']}/pause_deployment", {})

    def worker(self, *options: str, pool: str = "evalake", **environment: str) -> Process:
        """Start a worker of a pool. With --limit it dies when a run is retried at once."""
        return self.start("prefect", "worker", "start", "--pool", pool, *options, **{**PATIENCE, **environment})

    @contextmanager
    def here(self, results: Path) -> Iterator[None]:
        """Have the flow runs of this process be told to the server, and their results kept in a folder."""
        from prefect.events.worker import EventsWorker  # which takes seconds
        from prefect.logging.handlers import APILogWorker
        from prefect.settings import PREFECT_API_URL, PREFECT_LOCAL_STORAGE_PATH, temporary_settings
        from prefect.settings import PREFECT_CLIENT_MAX_RETRIES as RETRIES

        patience = {RETRIES: int(PATIENCE[RETRIES.name])}
        with temporary_settings({**patience, PREFECT_API_URL: self.url, PREFECT_LOCAL_STORAGE_PATH: results}):
            yield
            # While there is a server to take them: at its end this process would wait for each of them in vain.
            for worker in (EventsWorker, APILogWorker):
                worker.drain_all(timeout=PATIENCE_SECONDS)

    @contextmanager
    def pool(self, *deployments: str) -> Iterator[str]:
        """A work pool of its own for deployments (flow/name), so that a test knows its workers, which end with it."""
        pool = f"pool-{uuid4().hex[:8]}"
        self.post("/work_pools/", {"name": pool, "type": "process", "base_job_template": self._process_template()})
        ids = [self.get(f"/deployments/name/{deployment}")["id"] for deployment in deployments]
        for deployment in ids:
            self.patch(f"/deployments/{deployment}", {"work_pool_name": pool})
        try:
            yield pool
        finally:
            for process in self._processes:
                if pool in process.command:
                    process.stop()
            for deployment in ids:
                self.patch(f"/deployments/{deployment}", {"work_pool_name": "evalake"})

    def _process_template(self) -> Any:
        return self.get("/work_pools/evalake")["base_job_template"]

    def run(self, deployment: str, parameters: Mapping[str, Any]) -> str:
        """Start a flow run of a deployment (flow/name); returns its id."""
        found = self.get(f"/deployments/name/{deployment}")
        body = {"parameters": dict(parameters), "state": {"type": "SCHEDULED", "name": "Scheduled"}}
        return str(self.post(f"/deployments/{found['id']}/create_flow_run", body)["id"])

    def set_state(self, flow_run_id: str, kind: str, name: str, message: str | None = None) -> None:
        """Set a flow run's state, as the buttons of the UI do."""
        state = {"type": kind, "name": name, "message": message}
        self.post(f"/flow_runs/{flow_run_id}/set_state", {"state": state, "force": True})

    def wait_for(self, flow_run_id: str, *names: str) -> str:
        """Wait until a flow run's state has one of the names; returns which."""

        def reached() -> str | None:
            name = self.get(f"/flow_runs/{flow_run_id}")["state_name"]
            return name if name in names else None

        what = f"{' or '.join(names)} of {flow_run_id}"
        return str(wait_until(reached, what, every=EVERY_SECONDS_OF_RUNS))

    def get(self, path: str) -> Any:
        """GET a path of the Prefect API."""
        return self._request("GET", path)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """PATCH a path of the Prefect API."""
        return self._request("PATCH", path, json=dict(body))

    def delete(self, path: str) -> Any:
        """DELETE a path of the Prefect API."""
        return self._request("DELETE", path)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """POST to a path of the Prefect API."""
        return self._request("POST", path, json=dict(body))

    # As Prefect's own client does: a server whose database is busy answers 503, and means later.
    @retry(retry=retry_if_exception_type(BusyError), wait=wait_random(0.2, 1), stop=stop_after_delay(600), reraise=True)
    def _request(self, method: str, path: str, **content: Any) -> Any:
        answer = httpx.request(method, self.url + path, timeout=PATIENCE_SECONDS, verify=PLAIN, **content)
        if answer.status_code == 503:
            raise BusyError(answer.text)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def _healthy(self, server: Process) -> bool:
        assert server.popen.poll() is None, server.log.read_text(errors="replace")
        try:
            return httpx.get(f"{self.url}/health", timeout=2, verify=PLAIN).is_success
        except httpx.HTTPError:
            return False
