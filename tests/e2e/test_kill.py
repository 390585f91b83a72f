"""SIGKILL at random moments: what was committed is never asked again, and every row lands exactly once."""

import pytest

from evalake.contracts.tables import CALLS
from evalake.storage.ledger import KEY
from evalake.suites.command_guard.contract import RESULTS
from tests.e2e.kills import Kills
from tests.e2e.processes import PrefectStack
from tests.integration.flows.workplace import Workplace

pytestmark = pytest.mark.e2e


def test_five_kills_lose_nothing_that_was_committed(stack: PrefectStack, work: Workplace) -> None:
    seen = Kills(stack, work, calls=2000, seed=5).run(kills=5)
    assert seen.committed_and_asked_again == 0
    assert max(seen.repeats_by_kill) <= seen.allowed_repeats
    results, calls = work.rows(RESULTS), work.rows(CALLS)
    assert results.height == results.select(*RESULTS.key).unique().height == 2000
    assert calls.height == calls.select(KEY).unique().height == 2000
