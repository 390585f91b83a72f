"""Kills: a run of two thousand calls is killed twenty times at random moments, and the model server counts."""

import bisect
import json
import random
import subprocess
from dataclasses import dataclass, field

from benchmarks.measure import Measure, report
from benchmarks.place import folder
from evalake.contracts.tables import CALLS
from evalake.storage.ledger import KEY
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.processes import PrefectStack, wait_until
from tests.integration.flows.workplace import MODEL, Workplace
from tests.servers.model_server import ModelServer

CALLS_MADE = 2_000
TIMES = 20
CONCURRENCY = 32
LATENCY_SECONDS = 0.05
LIMITS = f"concurrency = {CONCURRENCY}\nattempts = 3\ntimeout_seconds = 30\n"


@dataclass
class Seen:
    """What the experiment saw.

    repeats_by_kill           requests of the killed attempt that a later one had to make again
    committed_and_asked_again requests whose reply was in the ledger after a kill, and that came in again later
    most_in_a_second          the most requests that came in within any one second
    """

    repeats_by_kill: list[int] = field(default_factory=list)
    committed_and_asked_again: int = 0
    most_in_a_second: int = 0

    @property
    def allowed_repeats(self) -> int:
        """What can be in flight at a kill, and what can have come in during the second before it."""
        return CONCURRENCY + self.most_in_a_second


class Kills:
    """`calls` calls by the command `evalake run`, with one Prefect server for all attempts."""

    def __init__(self, stack: PrefectStack, work: Workplace, calls: int, seed: int) -> None:
        self._stack, self._work, self._calls = stack, work, calls
        self._random = random.Random(seed)
        work.server.rule(reply='{"action": "BLOCK"}', latency=LATENCY_SECONDS)
        work.configure(batch_size=100, limits=LIMITS)
        self._dataset = work.dataset(calls)

    def run(self, kills: int) -> Seen:
        """Kill that many attempts, each at a random moment, let the last one complete, and count."""
        seen = Seen()
        committed_at: list[tuple[int, set[str]]] = []  # after each kill: requests so far, and what was committed
        for left in range(kills, 0, -1):
            before = self._work.asked()
            # Kills are spread over what is left, so that every attempt finds something to do.
            missing = self._calls - len(self._work.committed())
            target = before + self._random.randrange(1, max(2, 2 * missing // (left + 1)))
            self._kill_at(target)
            committed_at.append((self._work.asked(), self._work.committed()))
            attempt = {request.content for request in self._work.server.seen[before : committed_at[-1][0]]}
            seen.repeats_by_kill.append(len(attempt - committed_at[-1][1]))
        self._complete()
        for asked, committed in committed_at:
            seen.committed_and_asked_again += sum(r.content in committed for r in self._work.server.seen[asked:])
        seen.most_in_a_second = _most_in_a_second([request.started for request in self._work.server.seen])
        return seen

    def _kill_at(self, asked: int) -> None:
        process = self._start()
        wait_until(lambda: self._work.asked() >= asked or process.poll() is not None, "the moment to kill")
        assert process.poll() is None, f"the run ended before it could be killed: {process.communicate()}"
        process.kill()
        process.communicate()

    def _complete(self) -> None:
        process = self._start()
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        assert json.loads(out)["state"] == "completed"

    def _start(self) -> "subprocess.Popen[str]":
        command = ["evalake.cli", "run", "command_guard", "--models", MODEL, "--json", "--dataset", self._dataset]
        return self._stack.open(*command, "--lake", self._work.lake.uri, "--config", str(self._work.configuration))


def _most_in_a_second(times: list[float]) -> int:
    times = sorted(times)
    return max(place - bisect.bisect_left(times, time - 1.0) + 1 for place, time in enumerate(times))


def main() -> None:
    """Kill and rerun a run, count its calls, and report the worst case."""
    with folder() as place, PrefectStack(place / "prefect") as stack, ModelServer() as server:
        work = Workplace(place, server)
        seen = Kills(stack, work, CALLS_MADE, seed=TIMES).run(TIMES)
        calls, results = work.rows(CALLS), work.rows(RESULTS)
    repeats = ", ".join(map(str, seen.repeats_by_kill))
    off = abs(CALLS_MADE - results.height) + results.height - results.select(*RESULTS.key).unique().height
    twice = calls.height - calls.select(KEY).unique().height
    report(
        [
            Measure(
                "kills: committed calls asked again", seen.committed_and_asked_again, 0, False, "", f"{TIMES} kills"
            ),
            Measure(
                "kills: most calls repeated after one",
                max(seen.repeats_by_kill),
                seen.allowed_repeats,
                False,
                "",
                f"in flight and one second before it are allowed; after each kill: {repeats}",
            ),
            Measure(
                "kills: result rows missing or twice", off, 0, False, "", f"{results.height:,} rows of {CALLS_MADE:,}"
            ),
            Measure("kills: replies kept twice", twice, 0, False, "", f"{calls.height:,} replies in the ledger"),
        ]
    )


if __name__ == "__main__":
    main()
