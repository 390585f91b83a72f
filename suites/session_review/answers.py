"""What a report lists of session_review: every scored session, worst first, with the judge's words."""

from collections.abc import Mapping

import polars as pl

from contracts.tables import SAMPLES
from suites.base.figures import Answers
from suites.session_review.metrics import BANDS
from suites.session_review.viewing import in_brief

NOT_SCORED = "not scored"

ADDED_COLUMNS = ("band", "session", "failures", "tools")


def add_columns(results: pl.DataFrame, tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Add to the results what each session was about, and what the judge named, in words.

    band      the band of its score, or that it has none
    session   its alert and how the agent began, in a few words; null where the session is not kept any more
    failures  the patterns of failure that were found, by comma
    tools     the tools that were missed, by comma
    """
    band = pl.lit(NOT_SCORED)
    for lowest, highest in BANDS.values():
        is_within = pl.col("total_score").is_between(lowest, highest)
        band = pl.when(is_within).then(pl.lit(f"{lowest} to {highest}")).otherwise(band)
    known = tables[SAMPLES.table].filter(pl.col("sample_hash").is_in(results["sample_hash"].unique().to_list()))
    in_words = pl.col("input").map_elements(in_brief, pl.String)
    sessions = known.unique("sample_hash").select("sample_hash", session=in_words).collect()
    return results.join(sessions, on="sample_hash", how="left", maintain_order="left").with_columns(
        band=band,
        failures=pl.col("failure_tags").list.join(", "),
        tools=pl.col("missing_tools").list.join(", "),
    )


ANSWERS = Answers(
    title="Sessions",
    mistake=pl.col("session_id").is_not_null(),  # every one of them
    sample=("total_score", "session_id", "replicate"),
    group="band",
    label=None,
    shown=(
        ("session_id", "session"),
        ("total_score", "points"),
        ("session", "what it was about"),
        ("failures", "patterns of failure"),
        ("tools", "tools missed"),
        ("score_analysis", "the judge's analysis"),
        ("error_message", "failed because"),
    ),
    add_columns=add_columns,
    added_columns=ADDED_COLUMNS,
)
