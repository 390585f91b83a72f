"""The table `run_coverage`: what came of the items that a run asked, by subject, judge and dataset."""

from pydantic import Field

from contracts.contract import ALWAYS, Contract, RowModel
from contracts.rule import Dimension, Kind, Rule, not_negative


class RunCoverageRow(RowModel):
    """What came of one run's items of one subject, judge and dataset."""

    run_id: str = Field(description="The run.")
    model: str = Field(description="The subject model; empty for imported lines that name none.")
    judge: str = Field(description="The judge model; empty where none is involved.")
    dataset: str = Field(description="The dataset; empty for imported lines that name none.")
    asked: int = Field(description="Items of the run.")
    answered: int = Field(description="Items with an answer and, where there is a judge, a judgement.")
    without_verdict: int = Field(description="Answered items whose reply holds no verdict that can be read.")
    missing: int = Field(description="Items without an answer or without a judgement.")
    without_verdict_kinds: str = Field(description="Answered items without a verdict by kind, as JSON.")
    missing_kinds: str = Field(description="Missing items by kind, as JSON.")
    left_out: str = Field(description="Rows of the source that a documented rule left out, by reason, as JSON.")
    refused: str = Field(description="Rows of the source that could not be read, by reason, as JSON.")
    source_rows: int | None = Field(description="Rows of the source, with those left out; null where unknown.")
    lost_labels: list[str] = Field(description="Labels of the dataset of which no item is answered.")


RUN_COVERAGE = Contract(
    "run_coverage",
    RunCoverageRow,
    ("run_id", "model", "judge", "dataset"),
    "What came of each run's items by subject, judge and dataset: asked, answered, without a verdict, missing.",
    (
        *map(not_negative, ("asked", "answered", "without_verdict", "missing", "source_rows")),
        Rule("answered_within_asked", "answered", Kind.NOT_ABOVE, {"other": "asked"}, dimension=Dimension.CONSISTENCY),
        Rule(
            "without_verdict_within_answered",
            "without_verdict",
            Kind.NOT_ABOVE,
            {"other": "answered"},
            dimension=Dimension.CONSISTENCY,
        ),
    ),
    replaced_when=ALWAYS,
)
