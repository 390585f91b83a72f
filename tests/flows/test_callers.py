"""Callers: processes of one machine that make a run's calls together, as one would, within the same limits."""

from collections import Counter

import pytest

from contracts.tables import CALLS, RUN_RESERVATIONS
from tests.flows.workplace import Workplace

LATENCY_SECONDS = 0.05
LIMITS = "concurrency = 4\nrequests_per_minute = 1200\nattempts = 2\ntimeout_seconds = 20\n"


@pytest.fixture
def work(work: Workplace) -> Workplace:
    """Two callers, and a model that takes a while."""
    work.configure(batch_size=10, limits=LIMITS)
    set_at_the_top(work, "callers = 2")
    work.server.rule(reply='{"action": "BLOCK"}', latency=LATENCY_SECONDS)
    return work


def set_at_the_top(work: Workplace, *lines: str) -> None:
    work.configuration.write_text("\n".join([*lines, work.configuration.read_text()]))


def test_two_callers_keep_the_limits_of_one_and_ask_each_sample_once(work: Workplace) -> None:
    row = work.run(work.dataset(60))
    assert (row["state"], row["calls_made"], row["calls_failed"]) == ("completed", 60, 0)
    asked = Counter(request.content for request in work.server.seen)
    assert set(asked.values()) == {1}
    assert len(asked) == 60
    assert 1 < work.server.max_in_flight <= 4
    # 1,200 a minute are 20 a second: as many may begin at once, and as many more in every second after that.
    begun = sorted(request.started for request in work.server.seen)
    assert all(last - first >= 1 for first, last in zip(begun, begun[41:], strict=False))
    concurrency = work.rows(CALLS)["concurrency"]
    assert concurrency.max() == 2  # in each of the two


def test_two_callers_keep_one_ceiling(work: Workplace) -> None:
    set_at_the_top(work, "max_calls = 25")
    row = work.run(work.dataset(60))
    assert (row["state"], row["calls_made"]) == ("incomplete", 25)
    assert work.asked() == 25
    assert work.rows(RUN_RESERVATIONS)["holder"].n_unique() == 2
