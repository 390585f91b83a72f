"""The tables of answers by people (`human_labels`) and of themes in results (`roadmap_mentions`)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl
from pydantic import Field

from evalake.contracts.contract import Added, Contract, Rewritten, RowModel
from evalake.contracts.rule import Dimension, Kind, Rule, at_least_one, hash_rule, not_blank, not_negative
from evalake.core.hashing import content_hash


class HumanLabelRow(RowModel):
    """One person's answer to one question about one result, or about one finding of it."""

    label_id: str = Field(
        description="SHA-256 over what is labelled, by whom, and the question: a later answer replaces an earlier one."
    )
    suite: str = Field(description="The suite.")
    sample_id: str = Field(description="The sample.")
    sample_hash: str = Field(description="The sample's content hash.")
    model: str = Field(description="The subject model.")
    judge: str | None = Field(
        description="The judge whose judgement was shown; null where the label is on the answer alone."
    )
    prompt_type: str | None = Field(description="The prompt type of the answer; null where the suite has one.")
    replicate: int = Field(description="The number of the repeat, from 0.")
    finding_id: int | None = Field(description="The finding; null for a label of the whole result.")
    annotator: str = Field(description="The person.")
    question: str = Field(description="The suite's name of the question.")
    answer: str | None = Field(description="The answer in the suite's words; null where it is a number.")
    score: float | None = Field(description="The answer on the question's scale; null where it is a word.")
    inclusion_probability: float | None = Field(description="The probability of its draw; null where it was picked.")
    draw: str | None = Field(description="The hash of its draw; null where it was picked.")
    labelled_at: datetime = Field(description="When.")
    note: str | None = Field(description="The person's reason.")


YES, NO = "yes", "no"

DISPUTES = "disputes_ground_truth"
"""The question whether a person holds a sample's ground truth to be wrong, whichever suite it is of."""


def answered(word: Mapping[str, Any], answers: Mapping[str, str | bool | float | None]) -> list[dict[str, Any]]:
    """Build the rows of one person's answers about one thing: one for each of `answers`, by question, that is not null.

    `word` has the columns that the rows share; its `label_id` identifies what is labelled, and by whom.
    """
    return [
        {
            **word,
            "label_id": content_hash([word["label_id"], question]),
            "question": question,
            "answer": (YES if value else NO) if isinstance(value, bool) else value if isinstance(value, str) else None,
            "score": float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None,
        }
        for question, value in answers.items()
        if value is not None
    ]


_FIRST_QUESTIONS = (
    *("verdict", "target_found", "classification", "score"),
    *("root_cause_score", "attack_vector_score", "fix_score"),
)


def _one_row_a_question(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Turn the columns of the first schema, one for each question, into rows."""
    return pl.concat([_answers_to(rows, question) for question in _FIRST_QUESTIONS])


def _answers_to(rows: pl.LazyFrame, question: str) -> pl.LazyFrame:
    value = pl.col(question)
    of_words = question in ("verdict", "classification")
    truth = pl.when(value).then(pl.lit(YES)).otherwise(pl.lit(NO)) if question == "target_found" else None
    return rows.filter(value.is_not_null()).select(
        pl.col("label_id").map_elements(lambda word: content_hash([word, question]), pl.String),
        *("suite", "sample_id", "sample_hash", "model", "judge", "prompt_type", "replicate", "finding_id"),
        pl.col("labeller").alias("annotator"),
        pl.lit(question).alias("question"),
        (value if of_words else pl.lit(None, pl.String) if truth is None else truth).alias("answer"),
        (pl.lit(None, pl.Float64) if of_words or truth is not None else value).alias("score"),
        *("inclusion_probability", "labelled_at", "note"),
    )


HUMAN_LABELS = Contract(
    "human_labels",
    HumanLabelRow,
    ("label_id",),
    "People's answers about samples, findings and scores, one row a question.",
    (
        *map(hash_rule, ("label_id", "sample_hash")),
        *map(not_blank, ("suite", "sample_id", "model", "annotator", "question", "answer")),
        not_negative("replicate"),
        Rule("inclusion_probability_is_share", "inclusion_probability", Kind.BETWEEN, {"minimum": 0, "maximum": 1}),
        Rule(
            "drawn_with_some_chance",
            "inclusion_probability",
            Kind.BETWEEN,
            {"minimum": 1e-9, "maximum": None},
            dimension=Dimension.ACCURACY,
        ),
    ),
    replaced_when="new.labelled_at > old.labelled_at",
    changes=(Rewritten("one row for each question that was answered", _one_row_a_question), Added(("draw",))),
)


class RoadmapMentionRow(RowModel):
    """One thing that was named about one sample, with the theme that it belongs to in one roadmap."""

    roadmap_id: str = Field(
        description="The roadmap: SHA-256 over suite, judge, method and everything that was grouped."
    )
    theme_id: str = Field(description="The theme: SHA-256 over suite, kind and theme, the same in later roadmaps.")
    sample_hash: str = Field(description="The sample about which it was named.")
    name: str = Field(description="The name that the results have.")
    suite: str = Field(description="The suite whose results were read.")
    judge: str | None = Field(description="The model that grouped by meaning; null where it was done by rules.")
    kind: str = Field(description="The kind of gap, by the suite's name.")
    theme: str = Field(description="The name of the theme.")
    sample_id: str = Field(description="The sample's name in its dataset.")
    text: str | None = Field(description="The reason for naming it; null without one.")
    score: float = Field(description="The sample's mean score.")
    points_lost: float = Field(
        description="The points that the sample lacks, shared evenly among its themes of the kind; each row of a theme "
        "has the theme's share, divided by the sample's rows in it."
    )
    samples: int = Field(description="The number of samples in the roadmap.")
    run_id: str = Field(description="The run that asked, as in the ledger.")
    made_at: datetime = Field(description="When.")


ROADMAP_MENTIONS = Contract(
    "roadmap_mentions",
    RoadmapMentionRow,
    ("roadmap_id", "theme_id", "sample_hash", "name"),
    "Roadmaps: what scored samples were found to lack, grouped by meaning, with the samples behind each theme.",
    (
        *map(hash_rule, ("roadmap_id", "theme_id", "sample_hash")),
        *map(not_blank, ("name", "suite", "judge", "kind", "theme", "sample_id")),
        not_negative("points_lost"),
        at_least_one("samples"),
    ),
)
