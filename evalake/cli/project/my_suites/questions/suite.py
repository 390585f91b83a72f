"""questions: a model answers, and its answer is right where it names the known one. Change it into your own suite."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import Field

from evalake.contracts.rule import not_blank
from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Rate
from evalake.models.baselines import Messages
from evalake.models.request import Reply, Request
from evalake.sdk import (
    Conversation,
    Data,
    Exchange,
    Item,
    Metrics,
    Options,
    Presentation,
    ReplyColumns,
    ResultRow,
    SampleTable,
    Scoring,
    Suite,
    identity_columns,
    reply_columns,
    result_contract,
)
from evalake.sdk.figures import Answers, Quantity, Ranking

VERSION = "1"  # another one whenever `score` can give another row for the same replies


class QuestionResult(ResultRow, ReplyColumns):
    """One answer to a question."""

    question: str = Field(description="The question.")
    expected: str = Field(description="The known answer.")
    answer: str | None = Field(description="What the model answered; null where it sent no text.")
    correct: bool = Field(description="Whether the answer names the known one.")


RESULTS = result_contract("questions_results", QuestionResult, [not_blank("question"), not_blank("expected")])


def converse(item: Item, answered: Sequence[Exchange], options: Options) -> Request | None:
    """Ask the question; one reply ends the conversation."""
    if answered:
        return None
    return Request(item.model, ({"role": "user", "content": f"{item.sample.input}\nAnswer in a few words."},), {})


def score(item: Item, answered: Sequence[Exchange], options: Options) -> dict[str, list[Mapping[str, Any]]]:
    """Make the row of an answer; none where the call was given up on, so that a retry asks again."""
    reply = answered[-1].outcome
    if not isinstance(reply, Reply):
        return {}
    expected = json.loads(item.sample.target or '""')
    row = {
        **identity_columns(item, answered, VERSION),
        "question": item.sample.input,
        "expected": expected,
        "answer": reply.text,
        "correct": expected.casefold() in (reply.text or "").casefold(),
        **reply_columns(reply),
    }
    return {RESULTS.table: [row]}


def metrics(options: Options) -> tuple[Metric, ...]:
    """Declare what is measured; cost, tokens and calls come by themselves."""
    return (Metric("accuracy", Rate(pl.col("correct")), slices=("all", "dataset"), description="Right answers."),)


def says_paris(messages: Messages) -> str:
    """Answer every question with Paris: the bar that a model must beat, which needs no key."""
    return "Paris"


SUITE = Suite(
    name="questions",
    title="Questions",
    data=Data(
        read=SampleTable(
            "questions",
            columns={"input": "question", "target": "answer"},
            required=("input", "target"),
            starter=Path(__file__).with_name("starter.jsonl"),
        ),
        starter=("starter",),
    ),
    conversation=Conversation(
        next_request=converse, baselines={"says-paris": says_paris}, default_models=("baseline/says-paris",)
    ),
    scoring=Scoring(score=score, version=VERSION, results=RESULTS),
    metrics=Metrics(own=metrics, headline=("accuracy",)),
    presentation=Presentation(
        figures=(Ranking("Ranking", Quantity("accuracy", "right answers")),),
        answers=Answers(
            label=None, shown=(("question", "question"), ("answer", "answer"), ("expected", "known answer"))
        ),
    ),
)
