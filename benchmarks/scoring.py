"""Scoring: the processor time of a session that is scored on demand, its flow run included.

A service is asked for twenty scores at once, of a judge that takes two seconds for each of its two answers. What counts
is the processor time of the service, of all that it starts, and of the Prefect server, from the first request until
every score is there.
"""

import time

import psutil

from benchmarks.measure import Measure, report
from benchmarks.place import folder
from tests.e2e.processes import PrefectStack
from tests.integration.server.services import Place, Service, start
from tests.servers.model_server import ModelServer

SESSIONS = 20
LATENCY_SECONDS = 2.0
QUIET_SECONDS = 3.0
NAMES = [f"session-{number}" for number in range(SESSIONS)]


def main() -> None:
    """Score one session as a warm-up, then all others at once, and report what each took."""
    with folder() as home, PrefectStack(home / "prefect") as stack, ModelServer() as judge:
        place = Place(home, judge)
        place.answer(LATENCY_SECONDS)
        place.write("warm-up", *NAMES)
        service = start(stack, place)
        try:
            service.ask("warm-up").raise_for_status()
            service.wait_for("warm-up", "completed")
            _settle(service)
            watched = {"the service": service.process.popen.pid, "Prefect": stack.server.popen.pid}
            before, started = {name: _cpu_seconds(pid) for name, pid in watched.items()}, time.perf_counter()
            service.http.post("/api/v1/scoring/batch", json={"session_ids": NAMES}).raise_for_status()
            for name in NAMES:
                service.wait_for(name, "completed")
            seconds = time.perf_counter() - started
            _settle(service)
            used = {name: (_cpu_seconds(pid) - before[name]) / SESSIONS for name, pid in watched.items()}
        finally:
            service.stop()
    behind = ", ".join(f"{cpu:.2f} s of {name}" for name, cpu in used.items())
    behind += f"; {SESSIONS} scored in {seconds:.1f} s by a judge of {LATENCY_SECONDS:g} s"
    report([Measure("a scoring on demand, CPU", sum(used.values()), 1.0, False, "s", behind)])


def _settle(service: Service) -> None:
    """Wait for the end of the processes that score: until none has begun or ended for QUIET_SECONDS."""
    since, before = time.monotonic(), _processes(service.process.popen.pid)
    while time.monotonic() - since < QUIET_SECONDS:
        time.sleep(0.2)
        if (now := _processes(service.process.popen.pid)) != before:
            since, before = time.monotonic(), now


def _processes(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def _cpu_seconds(pid: int) -> float:
    """Add up the processor seconds of a process and of all that it has started, those that have ended too."""
    return sum(sum(process.cpu_times()[:4]) for process in _processes(pid))


if __name__ == "__main__":
    main()
