"""How people's ratings join the scorings: one number per session, on the judge's scale of 0 to 100."""

from collections.abc import Mapping

import polars as pl

from contracts.tables import HUMAN_LABELS
from suites.session_review.sources.read import SUITE

INPUTS = (HUMAN_LABELS,)

_WORD = ("sample_hash", "annotator")
QUESTION = "score"  # what a rating answers


def join_inputs(results: pl.LazyFrame, inputs: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """The scorings with `human_score`: the mean of what people give the session; null where nobody rated it.

    A rating is a word on the investigation, so it counts for every scoring of that session, whichever judge made it.
    Of several ratings by one person the latest is their word.
    """
    ratings = inputs[HUMAN_LABELS.table].filter((pl.col("suite") == SUITE) & (pl.col("question") == QUESTION))
    latest = ratings.sort("labelled_at", "label_id").unique(_WORD, keep="last", maintain_order=True)
    # In one order, so that the same ratings give the same mean to the last bit
    given = latest.group_by("sample_hash").agg(human_score=pl.col("score").sort().mean())
    return results.join(given, on="sample_hash", how="left", maintain_order="left")
