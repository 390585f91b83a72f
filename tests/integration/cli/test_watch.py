"""`evalake watch`: a run under way is shown until it ends, by model."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from evalake.cli.runs import headline
from tests.integration.cli.command import evalake_here

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
ROW = {
    **{"suite": "toys", "run_id": "r", "state": "running", "items": 400, "items_done": 100, "cost_usd": 0.5},
    **{"started_at": BEGAN, "ended_at": None, "calls_made": 100, "calls_from_ledger": 0},
}


def test_rate_and_time_left_follow_from_the_items_done() -> None:
    later = BEGAN + timedelta(seconds=50)
    assert headline(ROW, later) == "toys r running: 100 of 400 items, 2.0 a second, 0:02:30 left, cost 0.50 USD"
    ended = {**ROW, "state": "completed", "items_done": 400, "ended_at": later, "cost_usd": None}
    assert (
        headline(ended, later + timedelta(days=1)) == "toys r completed: 400 of 400 items, 8.0 a second, cost unknown"
    )
    uncounted = headline({**ROW, "calls_made": 0, "cost_usd": 0.0}, later)
    assert uncounted == "toys r running: 100 of 400 items, 2.0 a second, 0:02:30 left"
    assert headline({**ROW, "items_done": None}, later) == (
        "toys r running: an unknown number of 400 items, cost 0.50 USD"
    )


def test_a_lake_without_a_run_is_told_so(tmp_path: Path) -> None:
    done = evalake_here("watch", folder=tmp_path)
    assert (done.returncode, "has no run yet" in done.stderr) == (2, True)
