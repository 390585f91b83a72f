"""A run that is killed again and again, at random moments, and the model server that counts what it was asked."""

import time
from collections.abc import Iterator
from pathlib import Path

from chaos.outcome import Outcome
from evalake.contracts.tables import CALLS
from evalake.storage.ledger import KEY
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.kills import Kills
from tests.e2e.processes import PrefectStack
from tests.integration.flows.workplace import Workplace
from tests.servers.model_server import ModelServer

AT_ONCE = 10  # kills of one run
CALLS_OF_A_RUN = 1_000


def campaign(folder: Path, seed: int, seconds: float) -> Iterator[Outcome]:
    """Kill runs, ten times each, until the time is over; the last attempt of each completes."""
    until = time.monotonic() + seconds
    killed = rows = committed_again = 0
    broken = []
    with PrefectStack(folder / "prefect") as stack:
        for number in range(1000):
            if number and time.monotonic() > until:
                break
            (place := folder / str(number)).mkdir()
            with ModelServer() as server:
                work = Workplace(place, server)
                seen = Kills(stack, work, CALLS_OF_A_RUN, seed + number).run(AT_ONCE)
                calls, results = work.rows(CALLS), work.rows(RESULTS)
            killed, rows = killed + AT_ONCE, rows + results.height
            committed_again += seen.committed_and_asked_again
            if max(seen.repeats_by_kill) > seen.allowed_repeats:
                broken.append(f"{max(seen.repeats_by_kill)} calls repeated after one kill")
            if results.select(*RESULTS.key).n_unique() != results.height or results.height != CALLS_OF_A_RUN:
                broken.append(f"{results.height} result rows of {CALLS_OF_A_RUN}")
            if calls.select(KEY).n_unique() != calls.height:
                broken.append("replies kept twice")
    if committed_again:
        broken.append(f"{committed_again} committed calls asked again")
    held = f"{rows} result rows once each, {committed_again} committed calls asked again, repeats within the promise"
    yield Outcome("run: SIGKILL", killed, held, "; ".join(broken))
