"""What a suite provides: one object of data and pure functions, by which flows, storage and reports serve any suite."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

import polars as pl
from pydantic import BaseModel

from contracts.contract import Contract
from contracts.errors import ContractError
from contracts.hashing import content_hash
from metrics.definition import Metric
from providers.request import Failure, Reply, Request
from suites.figures import Answers, Figure


@dataclass(frozen=True)
class Sample:
    """One dataset item. `input` is text, or JSON where it has parts; `target` is JSON."""

    suite: str
    dataset: str
    sample_id: str
    input: str
    target: str | None = None
    label: str | None = None
    category: str | None = None
    severity: str | None = None
    difficulty: str | None = None
    cluster: str | None = None
    note: str | None = None

    @cached_property
    def sample_hash(self) -> str:
        """SHA-256 over everything that defines the sample: change its label, and it is another sample."""
        return content_hash(
            [
                self.suite,
                self.dataset,
                self.sample_id,
                self.input,
                self.target,
                self.label,
                self.category,
                self.severity,
                self.difficulty,
                self.cluster,
            ]
        )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something in a source that did not become a sample, and why."""

    where: str  # file and, where it helps, line or entry
    reason: str  # a fixed phrase, so that it can be counted
    payload: str | None = None  # the refused material, for quarantine; None where it was left out by design


@dataclass(frozen=True)
class Dataset:
    """What a source gave: the samples in order, and all that was left out."""

    name: str
    samples: tuple[Sample, ...]
    left_out: tuple[LeftOut, ...] = ()

    @cached_property
    def version(self) -> str:
        """SHA-256 over the sample hashes in order."""
        return content_hash([sample.sample_hash for sample in self.samples])


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be measured: a sample, answered by a model, judged by a judge or by rules."""

    sample: Sample
    model: str
    judge: str | None = None
    prompt_type: str = "direct"
    replicate: int = 0


@dataclass(frozen=True, slots=True)
class Answered:
    """A request with what came back for it."""

    prompt_hash: str
    outcome: Reply | Failure
    from_ledger: bool = False  # another run had asked; what this run asked is its own, in a retry too


@dataclass(frozen=True, slots=True)
class Recorded:
    """One line of recorded results: the item and the replies that were given, in the order of its conversation."""

    item: Item
    prompt_hashes: tuple[str, ...]
    replies: tuple[Reply, ...]


# Replies so far -> the next request, or None when the conversation is done. The first request goes to the subject
# (or, where the material is already there, to the judge).
Conversation = Callable[[Item, Sequence[Answered], "Options"], Request | None]

# An item whose conversation is done -> its rows by table, or no rows where a failure says nothing about the model.
Score = Callable[[Item, Sequence[Answered], "Options"], Mapping[str, Sequence[Mapping[str, Any]]]]


# What result rows of every suite have: whose they are, how they came, and by which scorer.
_IDENTITY = {"model", "sample_hash", "prompt_hash", "replicate", "scorer_version", "run_id", "origin"}

Options = Mapping[str, Any]  # the suite's section of the configuration, over its defaults


@dataclass(frozen=True, slots=True)
class Derived:
    """Rows that follow from the rows of a whole run, such as a panel's from its judges'."""

    rows: Mapping[str, Sequence[Mapping[str, Any]]]  # by table, as `Score` gives them
    items: Sequence[Mapping[str, Any]]  # what the manifest says of each: sample, model, judge, replicate, hashes


SheetFormat = Literal["csv", "jsonl"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line of a filled-in sheet that is no label, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class Labels:
    """What a filled-in sheet holds: rows of `human_labels`, what was refused, and how many lines nobody filled in."""

    rows: Sequence[Mapping[str, Any]]
    refused: Sequence[Refusal]
    empty: int


@dataclass(frozen=True)
class Labelling:
    """How people label a suite's results: the sheet they are given, and what it says once it is filled in."""

    # The run's rows of every table of the suite and of `human_labels`, how many to draw, a seed -> the sheet.
    sheet: Callable[[Mapping[str, pl.DataFrame], int, int, SheetFormat], str]
    # The sheet's text, its format, who filled it in, when -> the labels; SourceError where it is no sheet at all.
    read: Callable[[str, SheetFormat, str, datetime], Labels]
    # A line of the sheet -> what a form asks about it; the answers are columns of the line.
    questions: Callable[[Mapping[str, Any]], type[BaseModel]]


@dataclass(frozen=True)
class Index:
    """A suite's composite index, as far as its weights can be fitted to people's rankings."""

    components: Callable[[Mapping[str, float | None]], Mapping[str, float | None]]  # a model's metrics -> its parts
    weights: Callable[[Options], Mapping[str, float]]  # the weights in use


@dataclass(frozen=True)
class Suite:
    """One evaluation suite, whole."""

    name: str
    title: str
    baseline_models: tuple[str, ...]
    starter: tuple[str, ...]  # the sources that a run without --dataset reads
    read_dataset: Callable[[str], Dataset]  # a source, as `--dataset` takes it
    converse: Conversation
    score: Score
    scorer_version: str  # changes whenever `score` can give another row for the same replies
    results: Contract
    metrics: Callable[[Options], tuple[Metric, ...]]
    # One line of `evalake import`, SourceError where it is bad; None: what is imported are sources of samples.
    read_recorded: Callable[[Mapping[str, Any]], Recorded] | None
    headline: tuple[str, ...]  # the metrics a leaderboard shows, the ranking one first
    details: tuple[Contract, ...] = ()  # further tables of its rows
    baseline_judges: tuple[str, ...] = ()
    calls_subject: bool = True  # False: the material is there already, and a conversation begins with the judge
    prompt_types: tuple[str, ...] = ("direct",)
    options: Options = field(default_factory=dict)  # defaults of its section in the configuration
    queries: tuple[str, ...] = ()  # SQL to try after a run
    figures: tuple[Figure, ...] = ()  # what its report draws
    answers: Answers | None = None  # the columns by which models are compared sample by sample
    cluster: str | None = None  # the column by which the bootstrap resamples
    # What follows, from a run's result rows, for the run as a whole (a panel's rows).
    derive: Callable[[pl.DataFrame], Derived] | None = None
    # Further tables that its metrics read, and how they join the run's result rows.
    inputs: tuple[Contract, ...] = ()
    assemble: Callable[[pl.LazyFrame, Mapping[str, pl.LazyFrame]], pl.LazyFrame] | None = None
    # Metrics across rows (agreement of judges …), in the columns of `metrics.compute.measure`, with their definition.
    further_metrics: Callable[[pl.DataFrame, Options, int], pl.DataFrame] | None = None
    labelling: Labelling | None = None  # None: people do not label its results through sheets
    index: Index | None = None
    # What a reader of the metrics must know, from the frame they were computed from.
    warnings: Callable[[pl.DataFrame], Sequence[str]] | None = None

    def __post_init__(self) -> None:
        """Raise ContractError where result rows could not be found again, which a run would notice after its calls."""
        if missing := sorted(_IDENTITY - self.results.column.keys()):
            raise ContractError(
                f"the result rows of the suite {self.name} have no {', '.join(missing)}: add the columns"
            )

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """The tables of this suite alone."""
        return (self.results, *self.details)
