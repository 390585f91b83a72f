"""What scored sessions lack: tools that judges missed or wished to be better, and patterns of failure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evalake.contracts.tables import SAMPLES
from evalake.core.errors import EvalakeError
from evalake.sdk.suite import MENTIONS, Kind, Labelled, Roadmap
from evalake.suites.session_review import replies
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.replies import HIGHEST
from evalake.suites.session_review.session import load

_completed = pl.col("status") == "completed"

FAILURE, UNKNOWN = "failure", "unknown"
_LABELLED = {replies.ABSENT: "wishes.jsonl", FAILURE: "failures.jsonl"}

Tables = Mapping[str, pl.LazyFrame]


def mentions(tables: Tables) -> pl.DataFrame:
    """Collect the tools and failures named about each scored session; each once, however many scorings name it."""
    scores = tables[RESULTS.table].filter(_completed)
    about = scores.select("score_id", "sample_hash", "sample_id")
    tools = tables[MISSING_TOOLS.table].select(
        "score_id", kind=pl.col("kind").fill_null(UNKNOWN), name="tool_name", text="rationale"
    )
    failures = scores.select(
        "score_id",
        kind=pl.lit(FAILURE),
        name=pl.struct("failure_tags", "score_analysis").map_elements(_failures, pl.List(pl.String)),
        text=pl.lit(None, pl.String),
    ).explode("name")
    named = pl.concat([tools, failures]).filter(pl.col("name").is_not_null()).join(about, on="score_id")
    was = _as_it_was(tables, named.filter(kind=replies.ABSENT).select("sample_hash", "name").unique().collect())
    named = named.join(was.lazy(), on=("sample_hash", "name"), how="left").with_columns(
        kind=pl.when(pl.col("kind") == replies.ABSENT).then(pl.coalesce("was", "kind")).otherwise("kind")
    )
    once = named.group_by("kind", "name", "sample_hash").agg(pl.col("text", "sample_id").drop_nulls().sort().first())
    score = scores.group_by("sample_hash").agg(score=pl.col("total_score").sort().mean())
    return once.join(score, on="sample_hash").select(MENTIONS.names()).sort("kind", "name", "sample_hash").collect()


def _as_it_was(tables: Tables, absent: pl.DataFrame) -> pl.DataFrame:
    """Find tools that a judge calls absent though the session had them: `was` UNUSED, or IMPROVABLE where it was used.

    Names are compared without case, marks and the name of a server.
    """
    rows: list[dict[str, str]] = []
    if SAMPLES.table in tables and not absent.is_empty():
        hashes = absent["sample_hash"].unique().to_list()
        samples = tables[SAMPLES.table].filter(pl.col("sample_hash").is_in(hashes)).unique("sample_hash")
        for sample_hash, text in samples.select("sample_hash", "input").collect().iter_rows():
            try:
                session = load(text)
            except EvalakeError:
                continue
            used = {spelt for call in session.tool_calls for spelt in _spellings(call.name)}
            had = {spelt for agent in session.agents for tool in agent.tools for spelt in _spellings(tool.full_name)}
            for name in absent.filter(sample_hash=sample_hash)["name"]:
                if (spelt := set(_spellings(name))) & (used | had):
                    was = replies.IMPROVABLE if spelt & used else replies.UNUSED
                    rows.append({"sample_hash": sample_hash, "name": name, "was": was})
    return pl.DataFrame(rows, dict.fromkeys(("sample_hash", "name", "was"), pl.String))


def _spellings(name: str) -> Iterator[str]:
    """Yield a tool's name without case and marks, with its server and without."""
    for part in (name, name.rpartition(".")[2], name.rpartition("__")[2]):
        if plain := re.sub(r"[^a-z0-9]", "", part.casefold()):
            yield plain


def scored(tables: Tables) -> int:
    """Count the sessions that have a score."""
    return int(tables[RESULTS.table].filter(_completed).select(pl.col("sample_hash").n_unique()).collect().item())


def labelled() -> Mapping[str, Sequence[Labelled]]:
    """Read, by kind, examples in varied wording of what may be named about sessions, each with its theme."""
    folder = Path(__file__).parent
    return {
        kind: [Labelled(**json.loads(line)) for line in (folder / file).read_text(encoding="utf-8").splitlines()]
        for kind, file in _LABELLED.items()
    }


def _failures(score: Mapping[str, Any]) -> list[str]:
    """List each pattern that a scoring names, with its sentences in the analysis where these are found."""
    words = replies.read_failure_words(score["score_analysis"] or "")
    return [
        f"{tag}: {sentence}" if sentence else tag
        for tag in score["failure_tags"] or ()
        for sentence in words.get(tag, [""])
    ]


ROADMAP = Roadmap(
    title="Tool roadmap",
    best=HIGHEST,
    kinds={
        replies.ABSENT: Kind("Tools that do not exist", by_meaning=True),
        replies.IMPROVABLE: Kind("Tools to be improved", by_meaning=False),
        replies.UNUSED: Kind("Tools that should have been used", by_meaning=False),
        FAILURE: Kind("Patterns of failure", by_meaning=True, rule=lambda named: named.partition(":")[0]),
        UNKNOWN: Kind("Tools of unknown kind", by_meaning=True, shown_empty=False),
    },
    tables=(RESULTS, MISSING_TOOLS, SAMPLES),
    mentions=mentions,
    scored=scored,
    labelled=labelled,
)
