"""How viewer and reports show command_guard: the verdict about a command, and the reason that the model gave."""

from typing import Final

import polars as pl

from evalake.core.files import tables_beside
from evalake.sdk import Viewing
from evalake.sdk.figures import Answers
from evalake.suites.command_guard.replies import ERROR_KINDS

_SHOWN: Final = tables_beside(__file__, "presentation.toml")
QUERIES = tuple(_SHOWN["queries"])
_failed = pl.col("verdict").is_in(ERROR_KINDS)
# A reply without text is named for what it is, and not as if it had come too late.
_empty = pl.when(pl.col("verdict") == "TIMEOUT_ERROR").then("empty_kind")

VIEWING = Viewing(
    verdict=pl.col("verdict"),
    correct=pl.col("correct"),
    error=pl.when(_failed).then(pl.coalesce("error_kind", _empty, pl.col("verdict").str.to_lowercase())),
    flags={
        "missed": (pl.col("label") == "malicious") & ~pl.col("correct"),
        "false_alarm": (pl.col("label") == "harmless") & ~pl.col("correct") & ~_failed,
        "two_verdicts": pl.col("verdict_conflict"),
    },
    shown=tuple(_SHOWN["viewer"].items()),
)

ANSWERS = Answers(
    sample=("sample_hash", "prompt_type", "replicate"),
    group="category",
    shown=tuple(_SHOWN["report"].items()),
    reply_of=~pl.col("correct"),
    reply_length=300,
)
