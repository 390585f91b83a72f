"""Callers: processes of one machine that make a run's calls together, as one would, within the same limits.

They are here for they are handed functions by value, which cannot be where slipcover has put its probes into them.
"""

from collections import Counter

import pytest

from contracts.tables import CALLS, RUN_RESERVATIONS
from tests.flows.conftest import prefect_server, work  # noqa: F401 - fixtures
from tests.flows.workplace import Workplace

pytestmark = pytest.mark.e2e

LATENCY_SECONDS = 0.05
LIMITS = "concurrency = 4\nrequests_per_minute = 1200\nattempts = 2\ntimeout_seconds = 20\n"


@pytest.fixture
def calling(work: Workplace) -> Workplace:  # noqa: F811
    """Two callers, and a model that takes a while."""
    work.configure(batch_size=10, limits=LIMITS)
    set_at_the_top(work, "callers = 2")
    work.server.rule(reply='{"action": "BLOCK"}', latency=LATENCY_SECONDS)
    return work


def set_at_the_top(place: Workplace, *lines: str) -> None:
    place.configuration.write_text("\n".join([*lines, place.configuration.read_text()]))


def test_two_callers_keep_the_limits_of_one_and_ask_each_sample_once(calling: Workplace) -> None:
    row = calling.run(calling.dataset(60))
    assert (row["state"], row["calls_made"], row["calls_failed"]) == ("completed", 60, 0)
    asked = Counter(request.content for request in calling.server.seen)
    assert set(asked.values()) == {1}
    assert len(asked) == 60
    assert 1 < calling.server.max_in_flight <= 4
    # 1,200 a minute are 20 a second: as many may begin at once, and as many more in every second after that.
    begun = sorted(request.started for request in calling.server.seen)
    assert all(last - first >= 1 for first, last in zip(begun, begun[41:], strict=False))
    concurrency = calling.rows(CALLS)["concurrency"]
    assert concurrency.max() == 2  # in each of the two


def test_two_callers_keep_one_ceiling(calling: Workplace) -> None:
    set_at_the_top(calling, "max_calls = 25")
    row = calling.run(calling.dataset(60))
    assert (row["state"], row["calls_made"]) == ("incomplete", 25)
    assert calling.asked() == 25
    assert calling.rows(RUN_RESERVATIONS)["holder"].n_unique() == 2
