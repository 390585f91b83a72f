"""Scoring: the phases that a progress is in, and the circuit that opens when a provider is down."""

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from evalake.core.configuration import Limits
from evalake.suites.session_review.score import CANCELLED, CIRCUIT_OPEN, phase_at, why_open

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMITS = Limits(breaker_failures=2, breaker_seconds=60)
SCHEMA: dict[str, Any] = {"judge": pl.String, "completed_at": pl.Datetime("us", "UTC"), "error_kind": pl.String}


def scorings(*kinds: str | None, judge: str = "openai/judge", ago: float = 10.0) -> pl.LazyFrame:
    """Scorings that ended one after another, the last so many seconds ago."""
    ends = [NOW - timedelta(seconds=ago + len(kinds) - 1 - place) for place in range(len(kinds))]
    return pl.LazyFrame([*zip([judge] * len(kinds), ends, kinds, strict=True)], schema=SCHEMA, orient="row")


@pytest.mark.parametrize(
    ("progress", "phase"),
    [
        (0.0, "analyzing_methodology"),
        (59.9, "analyzing_methodology"),
        (60.0, "identifying_missing_tools"),
        (100.0, "identifying_missing_tools"),
    ],
)
def test_a_progress_is_in_the_phase_that_began_last(progress: float, phase: str) -> None:
    assert phase_at(progress) == phase


def test_the_circuit_opens_when_all_of_the_last_failed_as_the_provider_was_down() -> None:
    reason = why_open(scorings(None, "server", "server"), "openai/other", LIMITS, NOW)
    assert reason == "provider openai counts as down: its last 2 scorings failed (server)"


@pytest.mark.parametrize(
    ("ended", "judge"),
    [
        (scorings("server"), "openai/judge"),  # too few
        (scorings("server", "server", None), "openai/judge"),  # the last one went well
        (scorings("server", "invalid_request"), "openai/judge"),  # the provider answered
        (scorings("server", "server", ago=61.0), "openai/judge"),  # long enough ago to try again
        (scorings("server", "server"), "anthropic/judge"),  # another provider
    ],
)
def test_the_circuit_is_closed_otherwise(ended: pl.LazyFrame, judge: str) -> None:
    assert why_open(ended, judge, LIMITS, NOW) is None


def test_what_the_circuit_or_a_person_ended_says_nothing_of_the_provider() -> None:
    ended = scorings("server", "server", CIRCUIT_OPEN, CANCELLED)
    assert why_open(ended, "openai/judge", LIMITS, NOW) is not None
