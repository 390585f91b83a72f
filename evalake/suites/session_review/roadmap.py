"""What scored sessions lack: tools that judges missed or wished to be better, and patterns of failure."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evalake.sdk.suite import MENTIONS, Kind, Labelled, Roadmap
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.metrics import HIGHEST
from evalake.suites.session_review.replies import ABSENT, IMPROVABLE, UNUSED, read_failure_words

FAILURE = "failure"
_LABELLED = {ABSENT: Path(__file__).with_name("wishes.jsonl"), FAILURE: Path(__file__).with_name("failures.jsonl")}

Tables = Mapping[str, pl.LazyFrame]


def mentions(tables: Tables) -> pl.DataFrame:
    """Collect the tools and failures named about each scored session; each once, however many scorings name it."""
    scores = _completed(tables)
    about = scores.select("score_id", "sample_hash", "sample_id")
    tools = tables[MISSING_TOOLS.table].select(
        "score_id",
        # Answers that tell no kinds are of criteria that asked for absent tools only
        kind=pl.col("kind").fill_null(ABSENT),
        name="tool_name",
        text="rationale",
    )
    failures = scores.select(
        "score_id",
        kind=pl.lit(FAILURE),
        name=pl.struct("failure_tags", "score_analysis").map_elements(_failures, pl.List(pl.String)),
        text=pl.lit(None, pl.String),
    ).explode("name")
    named = pl.concat([tools, failures]).filter(pl.col("name").is_not_null()).join(about, on="score_id")
    once = named.group_by("kind", "name", "sample_hash").agg(pl.col("text", "sample_id").drop_nulls().sort().first())
    score = scores.group_by("sample_hash").agg(score=pl.col("total_score").sort().mean())
    return once.join(score, on="sample_hash").select(MENTIONS.names()).sort("kind", "name", "sample_hash").collect()


def scored(tables: Tables) -> int:
    """Count the sessions that have a score."""
    return int(_completed(tables).select(pl.col("sample_hash").n_unique()).collect().item())


def labelled() -> Mapping[str, Sequence[Labelled]]:
    """Read, by kind, examples in varied wording of what may be named about sessions, each with its theme."""
    return {
        kind: [Labelled(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
        for kind, file in _LABELLED.items()
    }


def pattern_of(name: str) -> str:
    """Extract the pattern of failure that a mention names before the judge's words."""
    return name.partition(":")[0]


def _failures(score: Mapping[str, Any]) -> list[str]:
    """List each pattern that a scoring names, with its sentences in the analysis where these are found."""
    words = read_failure_words(score["score_analysis"] or "")
    return [
        f"{tag}: {sentence}" if sentence else tag
        for tag in score["failure_tags"] or ()
        for sentence in words.get(tag, [""])
    ]


def _completed(tables: Tables) -> pl.LazyFrame:
    return tables[RESULTS.table].filter(pl.col("status") == "completed")


ROADMAP = Roadmap(
    title="Tool roadmap",
    best=HIGHEST,
    kinds={
        ABSENT: Kind("Tools that do not exist", by_meaning=True),
        IMPROVABLE: Kind("Tools to be improved", by_meaning=False),
        UNUSED: Kind("Tools that should have been used", by_meaning=False),
        FAILURE: Kind("Patterns of failure", by_meaning=True, rule=pattern_of),
    },
    tables=(RESULTS, MISSING_TOOLS),
    mentions=mentions,
    scored=scored,
    labelled=labelled,
)
