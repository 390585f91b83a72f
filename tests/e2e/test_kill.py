"""SIGKILL at random moments: what was committed is never asked again, and every row lands exactly once."""

import pytest

from tests.e2e.counts import are_there_once
from tests.e2e.kills import Kills
from tests.e2e.processes import PrefectStack
from tests.integration.flows.workplace import Workplace

pytestmark = pytest.mark.e2e

ITEMS = 800


def test_two_kills_lose_nothing_that_was_committed(stack: PrefectStack, work: Workplace) -> None:
    seen = Kills(stack, work, calls=ITEMS, seed=5).run(kills=2)
    assert seen.committed_and_asked_again == 0
    assert max(seen.repeats_by_kill) <= seen.allowed_repeats
    assert are_there_once(work, ITEMS)
