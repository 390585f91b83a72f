"""What a scoring goes through: its states, its phases, and the circuit breaker over the last ones.

While all of the last `breaker_failures` scorings of a provider's judges failed because the provider was down, the next
ones fail at once. Every `breaker_seconds` after the last failure one may try; a score closes the circuit.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import polars as pl

from core.configuration import Limits
from providers.failures import PROVIDER_DOWN

ACTIVE = ("pending", "in_progress")
PHASES: Mapping[str, float] = {"analyzing_methodology": 10.0, "identifying_missing_tools": 60.0}
"""The phases of a scoring in their order, and the progress at which each begins."""

CIRCUIT_OPEN = "circuit_open"
CANCELLED, LOST = "cancelled", "lost"
GIVEN_UP = (CANCELLED, LOST)  # kinds of errors of scorings that were ended from outside


def phase_at(progress: float) -> str:
    """Look up the phase that a progress is in."""
    return [phase for phase, begins in PHASES.items() if begins <= max(progress, 10.0)][-1]


def why_open(scorings: pl.LazyFrame, judge: str, limits: Limits, now: datetime | None = None) -> str | None:
    """Explain why the judge must not be asked now.

    Args:
        scorings: Rows of `session_scores`.
        judge: The judge model.
        limits: The limits of its provider.
        now: The time; the clock's where it is not given.

    Returns:
        One sentence; None where the judge may be asked.
    """
    provider = judge.partition("/")[0]
    of_provider = (
        pl.col("judge").str.starts_with(f"{provider}/")
        & pl.col("completed_at").is_not_null()
        & (pl.col("error_kind").is_null() | ~pl.col("error_kind").is_in([CIRCUIT_OPEN, CANCELLED]))
    )
    ended = scorings.filter(of_provider).select("completed_at", "error_kind").collect()
    last = ended.sort("completed_at").tail(limits.breaker_failures)
    was_down = last["error_kind"].is_in(list(PROVIDER_DOWN)).fill_null(False)  # a score has no kind of error
    if last.height < limits.breaker_failures or not was_down.all():
        return None
    since = last["completed_at"].max()
    assert isinstance(since, datetime)
    if (now or datetime.now(UTC)) - since > timedelta(seconds=limits.breaker_seconds):
        return None
    return f"provider {provider} counts as down: its last {last.height} scorings failed ({last['error_kind'][-1]})"
