"""Kills: a run of two thousand calls is killed twenty times at random moments, and the model server counts."""

from benchmarks.measure import Measure, report
from benchmarks.place import folder
from evalake.contracts.tables import CALLS
from evalake.storage.ledger import KEY
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.kills import Kills
from tests.e2e.processes import PrefectStack
from tests.integration.flows.workplace import Workplace
from tests.servers.model_server import ModelServer

CALLS_MADE = 2_000
TIMES = 20


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
