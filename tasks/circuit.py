"""The circuit breaker of scorings, each of which has a process of its own: what the last ones came to tells the next.

While all of the last `breaker_failures` scorings of a provider's judges failed because the provider was down, the next
ones fail at once. Every `breaker_seconds` after the last failure one may try; a score closes the circuit.
"""

from datetime import UTC, datetime, timedelta

import polars as pl

from contracts.configuration import Configuration
from providers.failures import PROVIDER_DOWN
from storage.lake import Lake
from suites.session_review.contract import RESULTS

CIRCUIT_OPEN = "circuit_open"


def why_open(lake: Lake, judge: str, configuration: Configuration, now: datetime | None = None) -> str | None:
    """Why the judge is not to be asked now (by default the time it is); None where it may be."""
    provider = judge.partition("/")[0]
    limits = configuration.limits(provider)
    told = (
        pl.col("judge").str.starts_with(f"{provider}/")
        & pl.col("completed_at").is_not_null()
        & (pl.col("error_kind").is_null() | (pl.col("error_kind") != CIRCUIT_OPEN))
    )
    ended = lake.frame(RESULTS).filter(told).select("completed_at", "error_kind").collect()
    last = ended.sort("completed_at").tail(limits.breaker_failures)
    if last.height < limits.breaker_failures or not last["error_kind"].is_in(list(PROVIDER_DOWN)).all():
        return None
    since = last["completed_at"].max()
    assert isinstance(since, datetime)
    if (now or datetime.now(UTC)) - since > timedelta(seconds=limits.breaker_seconds):
        return None
    return f"provider {provider} counts as down: its last {last.height} scorings failed ({last['error_kind'][-1]})"
