"""Judge versions: which ones a run's judgements are from, and which judges have moved between two runs."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from evalake.contracts.tables import CALLS, RUN_ITEMS
from evalake.contracts.tables.metrics import JUDGE_VERSIONS
from evalake.contracts.tables.runs import JUDGE_CALL, SUBJECT_CALL
from evalake.sdk import Suite
from evalake.storage.lake import Lake
from evalake.storage.ledger import KEY, replies
from evalake.suites.registry import suite as find_suite
from evalake.tasks.runtime.runs import run_row


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run, or one model of it."""

    run_id: str
    model: str | None = None


def versions_of(lake: Lake, suite: Suite, part: RunPart) -> pl.DataFrame:
    """Count the judgements by version, of the judges that have moved; one row a version, in order.

    The columns are judge, version, since (null for version 1) and judgements. A judgement is of the version that was
    current when its reply came, whichever run asked for it. Imported ones are left out:
    nobody knows when they were given.
    """
    moved = (pl.col("suite") == suite.name) & (pl.col("version") > 1)
    moves = (
        lake.frame(JUDGE_VERSIONS).filter(moved).select("judge", "version", "since").unique().sort("since").collect()
    )
    if moves.is_empty() or (judgements := _judgements(lake, suite, part, moves["judge"])).is_empty():
        return pl.DataFrame(schema={**moves.schema, "judgements": pl.UInt32})
    wanted = pl.col("prompt_hash").is_in(judgements["prompt_hash"].unique().implode())
    called = replies(lake.frame(CALLS).filter(wanted, pl.col("origin") == "call")).select(*KEY, "answered_at")
    timed = judgements.join(called.collect(), on=KEY).sort("answered_at")
    joined = timed.join_asof(moves, left_on="answered_at", right_on="since", by="judge", check_sortedness=False)
    by_version = joined.with_columns(pl.col("version").fill_null(1)).group_by(*moves.columns)
    return by_version.agg(judgements=pl.len()).sort("judge", "version")


def _judgements(lake: Lake, suite: Suite, part: RunPart, judges: pl.Series) -> pl.DataFrame:
    """Find the judge, and the first call to it, of each item of the part that one of the judges has judged."""
    mine = (pl.col("run_id") == part.run_id) & pl.col("judge").is_in(judges.unique().implode())
    if part.model is not None:
        mine &= pl.col("model") == part.model
    call = JUDGE_CALL if suite.conversation.asks_subject else SUBJECT_CALL
    asked = [pl.col(column).alias(name) for name, column in call.items()]
    items = lake.frame(RUN_ITEMS).filter(mine).select("judge", *asked)
    return items.drop_nulls().unique().collect()


def version_warnings(lake: Lake, suite: Suite, run_id: str) -> Iterator[str]:
    """Yield a sentence on the versions of each judge that has moved, for readers of a run's metrics."""
    for (judge,), rows in versions_of(lake, suite, RunPart(run_id)).group_by("judge", maintain_order=True):
        version, since = rows.row(-1, named=True)["version"], rows.row(-1, named=True)["since"]
        if rows.height > 1:
            counts = " and ".join(
                f"{row['judgements']} of version {row['version']}" for row in rows.iter_rows(named=True)
            )
            yield f"the judge {judge} moved between the judgements: {counts}, which do not compare with each other"
        elif version > 1:
            yield f"the judge {judge} is in version {version} since {since:%Y-%m-%d}: numbers of before do not compare"


def moves_between(lake: Lake, *parts: RunPart) -> list[str]:
    """Name each judge with several versions among the compared judgements.

    Raises UsageError where there is no such run.
    """
    suites = [find_suite(run_row(lake, part.run_id)["suite"], lake) for part in parts]
    versions = pl.concat([versions_of(lake, suite, part) for suite, part in zip(suites, parts, strict=True)])
    return [
        f"the judge {judge} moved between versions {' and '.join(map(str, sorted(set(rows['version']))))}"
        for (judge,), rows in versions.group_by("judge", maintain_order=True)
        if rows["version"].n_unique() > 1
    ]
