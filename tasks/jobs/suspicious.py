"""Suspicious replies: those of the ledger that look like a failure that was kept as a reply, and their withdrawal."""

from datetime import UTC, datetime

import polars as pl

from contracts.compile.arrow import conform
from contracts.tables import CALLS, WITHDRAWN_CALLS
from core.errors import UsageError
from storage.lake import Lake
from storage.landing import land
from storage.ledger import KEY, replies

_EMPTY = pl.col("response").fill_null("").str.strip_chars() == ""
_USED = pl.any_horizontal(pl.col("input_tokens", "output_tokens", "reasoning_tokens") > 0).fill_null(False)
_ENDED_BY_RULE = (
    pl.col("finish_reason").fill_null("").str.to_lowercase().is_in(["content_filter", "length", "max_tokens"])
)
_CALLS_TOOL = pl.col("finish_reason").is_in(["tool_calls", "tool_use", "function_call"])

# The first that holds is the reply's kind
_KINDS = {
    "error-finish": pl.col("finish_reason") == "error",
    "tool-call": _EMPTY & _CALLS_TOOL,
    "empty": _EMPTY & _USED & ~_ENDED_BY_RULE.fill_null(False),
    "empty-without-usage": _EMPTY & ~_USED & ~_ENDED_BY_RULE.fill_null(False),
}
KINDS = tuple(_KINDS)


def suspicious(lake: Lake) -> pl.DataFrame:
    """Count the suspicious replies by the run that asked, model and kind; those that were withdrawn are left out."""
    counted = _found(lake).group_by("run_id", "model", "kind").agg(replies=pl.len().cast(pl.Int64))
    return counted.sort("replies", "run_id", "model", "kind", descending=[True, False, False, False])


def ask_again(
    lake: Lake, kind: str, run_id: str | None = None, model: str | None = None, *, dry_run: bool = False
) -> pl.DataFrame:
    """Withdraw the suspicious replies of a kind, so that the next run asks for them again; returns their counts.

    The replies stay in the ledger. Raises UsageError for a kind that there is not.
    """
    if kind not in KINDS:
        raise UsageError(f"no suspicious replies are of the kind {kind!r}: choose one of {', '.join(KINDS)}")
    rows = _found(lake).filter(pl.col("kind") == kind)
    rows = rows if run_id is None else rows.filter(pl.col("run_id") == run_id)
    rows = rows if model is None else rows.filter(pl.col("model") == model)
    if rows.height and not dry_run:
        withdrawn = rows.drop("run_id", "ledger_version").with_columns(withdrawn_at=pl.lit(datetime.now(UTC)))
        land(lake, WITHDRAWN_CALLS, conform(withdrawn, WITHDRAWN_CALLS))
    return rows.group_by("run_id", "model", "kind").agg(replies=pl.len().cast(pl.Int64)).sort("run_id", "model")


def _found(lake: Lake) -> pl.DataFrame:
    """Read the suspicious replies that stand: key, revision, model, run and kind."""
    calls, identity = lake.frame(CALLS), [*KEY, "reply_revision"]
    kind = pl.coalesce(pl.when(holds).then(pl.lit(name)) for name, holds in _KINDS.items())
    asked = calls.filter(pl.col("origin") == "call").with_columns(kind=kind).filter(pl.col("kind").is_not_null())
    found = asked.select(*identity, "ledger_version", "model", "run_id", "kind").collect().lazy()
    same = calls.select(*identity, "ledger_version").join(found.select(KEY).unique(), on=KEY, how="semi")
    standing = replies(same).join(lake.frame(WITHDRAWN_CALLS), on=identity, how="anti")
    return found.join(standing, on=[*identity, "ledger_version"], how="semi").collect()
