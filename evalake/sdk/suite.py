"""A suite: data and pure functions, by which flows, storage and reports serve any suite.

A suite is made of small specs: where samples come from (`Data`), what is asked (`Conversation`, `Prompts`), how
replies become rows (`Scoring`), what is measured of them (`Metrics`) and how that is shown (`Presentation`). Whatever
has a default may be left out.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from evalake.contracts.contract import Contract
from evalake.core.configuration import PROMPTS
from evalake.core.errors import ConfigurationError, ContractError
from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Total
from evalake.models.request import Baseline
from evalake.sdk.figures import Answers, Figure
from evalake.sdk.json_in_text import json_object
from evalake.sdk.people import Correction, Labelling
from evalake.sdk.results import read_recorded
from evalake.sdk.sample import Converse, Dataset, Exchange, Item, Options, Recorded, RecordedFolder, Sample, Score
from evalake.sdk.tool_results import Answered

# A roadmap: what results name as missing, to be grouped by meaning, counted and ranked over many results.


MENTIONS = pl.Schema(
    {
        "kind": pl.String,  # a key of `Roadmap.kinds`
        "name": pl.String,
        "text": pl.String,  # why it was named; null where nothing is said
        "sample_hash": pl.String,
        "sample_id": pl.String,
        "score": pl.Float64,  # the sample's
    }
)
"""The columns of what was named: one row for each kind, name and sample."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of things that are named."""

    title: str
    by_meaning: bool  # False: names of it are a vocabulary, and equal where they mean the same
    rule: Callable[[str], str] | None = None  # a name's theme where no judge groups; None: by the words in common
    shown_empty: bool = True  # False: it is listed only where something of it was named


@dataclass(frozen=True, slots=True)
class Labelled:
    """Something named, with the theme that it belongs to as people see it."""

    name: str
    text: str
    theme: str
    held_out: bool  # whether no rule was chosen by looking at it


@dataclass(frozen=True)
class Roadmap:
    """How a roadmap is made of a suite's results."""

    title: str
    best: float  # the highest score, where nothing is missing
    kinds: Mapping[str, Kind]
    tables: tuple[Contract, ...]  # what is read of the lake
    mentions: Callable[[Mapping[str, pl.LazyFrame]], pl.DataFrame]  # rows by table -> the columns of MENTIONS
    scored: Callable[[Mapping[str, pl.LazyFrame]], int]  # how many samples have a score
    labelled: Callable[[], Mapping[str, Sequence[Labelled]]]  # by kind: on which ways of grouping are measured


# Prompts that a configuration adds to a suite: their parts by prompt type, and their worked examples.


EXAMPLES = "examples"
"""The part that holds worked examples: a JSON object with `input` and `reply` on each line."""


def own_prompt(options: Mapping[str, Any], prompt_type: str) -> Mapping[str, str]:
    """Look up the configured parts of a prompt type; empty where there are none, as for the suite's own types."""
    parts: Mapping[str, str] = options.get(PROMPTS, {}).get(prompt_type, {})
    return parts


def require_known(prompt_type: str, options: Mapping[str, Any], own: tuple[str, ...]) -> None:
    """Raise ConfigurationError where a prompt type is neither the suite's own nor the configuration's any more."""
    if prompt_type not in own and prompt_type not in options.get(PROMPTS, {}):
        raise ConfigurationError(f"the prompt {prompt_type} is not in the configuration: add it again under {PROMPTS}")


def require_part(parts: Mapping[str, str], name: str) -> None:
    """Raise ConfigurationError where a part is missing that the prompt needs."""
    if name not in parts:
        raise ConfigurationError(f"it needs the part {name}")


def read_examples(parts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Read the worked examples, each an input and the reply to it.

    Raises ConfigurationError naming the line that is no example.
    """
    lines = enumerate(parts.get(EXAMPLES, "").splitlines(), start=1)
    return [_example(number, line) for number, line in lines if line.strip()]


def example_messages(parts: Mapping[str, str], ask: Callable[[str], str]) -> list[dict[str, str]]:
    """Write the examples as messages to be sent before the question; `ask` turns an input into a question."""
    messages = []
    for given, reply in read_examples(parts):
        messages += [{"role": "user", "content": ask(given)}, {"role": "assistant", "content": reply}]
    return messages


def _example(number: int, line: str) -> tuple[str, str]:
    match json_object(line) or {}:
        case {"input": str(given), "reply": str(reply), **others} if not others and given.strip() and reply.strip():
            return given, reply
    raise ConfigurationError(
        f'line {number} of {EXAMPLES} is not a JSON object with the texts "input" and "reply", and nothing else'
    )


# The columns that result rows of every suite must have: model, sample, requests, scorer, run and origin.
_IDENTITY = {
    *("model", "sample_hash", "prompt_hash", "endpoint", "replicate", "reply_revision", "scorer_version"),
    *("landed_by_run", "origin"),
}


EMPTY = "empty"
"""The kind of a reply without a verdict that has no text."""


REFUSALS = ("content_policy", "context_length")
"""Kinds of failed calls by which a model or its provider refuses a subject's request: wrong answers, not missing."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What came of items, as expressions over result rows; one that is None is null in every row.

    Both give a fixed word, so that rows can be counted by it.
    """

    missing: pl.Expr | None = None  # why the row stands for no answer or no judgement; null where there is one
    without_verdict: pl.Expr | None = None  # why no verdict can be read from the reply; null where one can be


@dataclass(frozen=True, slots=True)
class Viewing:
    """What the viewer shows of a suite. Expressions are over result rows; one that is None is null in every row."""

    verdict: pl.Expr | None = None  # what the answer decided, as one word
    correct: pl.Expr | None = None  # whether that was right; null where nobody can say
    score: pl.Expr | None = None  # a number that says how good it was, where a suite gives one
    error: pl.Expr | None = None  # why there is no verdict, as a word or a sentence
    flags: Mapping[str, pl.Expr] = field(default_factory=dict)  # yes or no of a row, by which items are chosen
    shown: tuple[tuple[str, str], ...] = ()  # columns of a result row and their headings, in order
    details: tuple[tuple[str, str], ...] = ()  # likewise of the rows of its further tables
    input_text: Callable[[Sample], str] = lambda sample: sample.input  # the sample as a reader reads it
    input_brief: Callable[[str], str] | None = None  # an input in a few words, for lists; None: its beginning
    input_is_code: bool = False  # then it is shown with numbers of its lines
    # The input as a reader reads it, a result row, rows of further tables -> lines from 1, and what is said of each.
    remarks: Callable[[str, Mapping[str, Any], Sequence[Mapping[str, Any]]], list[tuple[int, str]]] | None = None
    deviation: tuple[str, str] | None = None  # metric and heading of how far one score moves when asked again

    @property
    def told(self) -> dict[str, pl.Expr]:
        """What a result row says, by name, null where the suite does not tell."""
        kinds = {"verdict": pl.String(), "correct": pl.Boolean(), "score": pl.Float64(), "error": pl.String()}
        said = {name: getattr(self, name) for name in kinds}
        return {n: pl.lit(None, kind) if said[n] is None else said[n].cast(kind) for n, kind in kinds.items()}


@dataclass(frozen=True)
class Calibration:
    """Items with known judgements, and the function that compares a judge's judgements with them."""

    # A judge -> each item with what was answered before the judge's turn.
    items: Callable[[str], Sequence[tuple[Item, list[Exchange]]]]
    # Items with all answers -> the columns of `evalake.metrics.agreement.PAIRS`, the known decision first.
    compare: Callable[[Sequence[tuple[Item, Sequence[Exchange]]]], pl.DataFrame]
    decisions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Derived:
    """Rows that follow from the rows of a whole run, like a panel's from its judges'."""

    rows: Mapping[str, Sequence[Mapping[str, Any]]]  # by table, as `Score` gives them
    items: Sequence[Mapping[str, Any]]  # what the manifest says of each: sample, model, judge, replicate, hashes


@dataclass(frozen=True)
class Index:
    """A suite's composite index, as far as its weights can be fitted to people's rankings."""

    components: Callable[[Mapping[str, float | None]], Mapping[str, float | None]]  # a model's metrics -> its parts
    weights: Callable[[Options], Mapping[str, float]]  # the weights in use


@dataclass(frozen=True)
class Data:
    """Where samples and recorded results come from.

    Example: `Data(read=SampleTable("quiz", columns={"input": "question"}), starter=("starter",))`
    """

    read: Callable[[str], Dataset]  # a source, as `--dataset` takes it
    starter: tuple[str, ...] = ()  # the sources that a run without --dataset reads
    folders: bool = True  # whether `read` takes folders; False: a folder stands for the tables in it
    imports: Literal["results", "samples"] = "results"  # what `evalake import` takes in
    knows: Callable[[str], bool] | None = None  # whether a source is plainly this suite's: imported without --suite
    # One line of recorded results, SourceError where it is bad; None: as `evalake.sdk.results` reads it.
    read_recorded: Callable[[Mapping[str, Any]], Recorded] | None = None
    # The label that such a line states, though it cannot be read
    stated_label: Callable[[Mapping[str, Any]], Any] = lambda line: line.get("label")
    # A folder of `evalake import`; gives None where it holds nothing of the suite's own form.
    read_folder: Callable[[Path], RecordedFolder | None] | None = None
    # Answers that another tool recorded, each with its place; None: this suite takes none.
    read_answers: Callable[[Sequence[Answered]], Iterator[tuple[str, Recorded]]] | None = None


@dataclass(frozen=True)
class Conversation:
    """What is asked of whom.

    Example: `Conversation(next_request, baselines={"yes": says_yes}, default_models=("baseline/yes",))`
    """

    next_request: Converse
    asks_subject: bool = True  # False: the material is there already, and a conversation begins with the judge
    baselines: Mapping[str, Baseline] = field(default_factory=dict)  # rule-based models of its own, by name
    default_models: tuple[str, ...] = ()  # those that a run without --models asks
    default_judges: tuple[str, ...] = ()  # those that a run without --judges asks
    # Parameters of requests to judges that take them, where nothing else is configured; repeats have no seed.
    judge_parameters: Mapping[str, Any] = field(default_factory=dict)
    # A conversation goes on after its first answer, unless a model's `cache_prompt` says no.
    caches_prompts: bool = False
    fenced: bool = False  # its prompts hold material of strangers between lines that carry the item's fence
    streams: bool = False  # answers are so long that they come piece by piece, unless a model's `stream` says otherwise
    # The ends of replies that take a conversation its usual way, by which calls are estimated before they are made.
    usual_replies: tuple[str, ...] = ("", "")


@dataclass(frozen=True)
class Prompts:
    """The prompt types, and what a configuration may put in place of their texts.

    Example: `Prompts(types=("direct", "chain_of_thought"), parts=("system", "request"))`
    """

    types: tuple[str, ...] = ("direct",)
    usual: int = 1  # how many of them a run without --prompt-types asks with
    # Parts that a configuration may replace by its own texts; `check` raises ConfigurationError where these cannot be
    # used. `next_request` finds them in its options as `prompts`, by prompt type and part.
    parts: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()  # of all parts; `templates` in its options names one, or has texts by part
    check: Callable[[Mapping[str, str]], object] | None = None
    # Every text of a prompt type, its own or the configuration's; None: only those of the configuration are known.
    texts: Callable[[Options, str], Mapping[str, str]] | None = None


@dataclass(frozen=True)
class Scoring:
    """How replies become rows of tables.

    Example: `Scoring(score, version="1", results=result_contract("quiz_results", QuizResult))`
    """

    score: Score
    version: str  # changes whenever `score` can give another row for the same replies
    results: Contract
    extra_tables: tuple[Contract, ...] = ()  # further tables of its rows
    outcomes: Outcomes = field(default_factory=Outcomes)  # what came of its items, as its result rows tell it
    # From a run's rows by table -> the rows that follow from the run as a whole (a panel's rows).
    derive: Callable[[Mapping[str, pl.DataFrame], Options], Derived] | None = None
    # The `criteria_hash` of rows of a prompt type, in suites with that column: rows of one request may differ in it.
    criteria: Callable[[Options, str], str] | None = None

    def __post_init__(self) -> None:
        """Raise ContractError where result rows lack columns that identify them; a run would fail after its calls."""
        if missing := sorted(_IDENTITY - self.results.column.keys()):
            raise ContractError(f"the table {self.results.table} has no {', '.join(missing)}: add the columns")


@dataclass(frozen=True)
class Metrics:
    """What is measured of the rows of a run.

    Example: `Metrics(lambda options: (Metric("accuracy", Rate(pl.col("correct"))),), headline=("accuracy",))`
    """

    own: Callable[[Options], tuple[Metric, ...]]  # beside those of usage, which come by themselves
    headline: tuple[str, ...]  # the metrics a leaderboard shows, the ranking one first
    # Trivial models, which answer every sample alike: name -> what replaces columns of any model's result rows.
    # Their metrics are the least to be beaten.
    trivial: Mapping[str, Mapping[str, pl.Expr]] = field(default_factory=dict)
    repeated: pl.Expr | None = None  # the value whose variance is split into samples, repeats and judges
    unmeasured: tuple[str, ...] = ()  # columns of result rows that no metric and no warning reads, like texts
    # Further tables that metrics read, and how they join the run's result rows.
    inputs: tuple[Contract, ...] = ()
    join_inputs: Callable[[pl.LazyFrame, Mapping[str, pl.LazyFrame]], pl.LazyFrame] | None = None
    # Metrics across rows (agreement of judges …), in the columns of `evalake.metrics.compute.measure`.
    across_rows: Callable[[pl.DataFrame, Options], pl.DataFrame] | None = None
    across_rows_version: int = 1  # changes whenever `across_rows` gives other values for the same rows
    corrected: Mapping[str, Correction] = field(default_factory=dict)  # how rates of what judges say are corrected
    index: Index | None = None
    # What a reader of the metrics must know, from the frame they were computed from.
    warnings: Callable[[pl.DataFrame], Sequence[str]] | None = None


@dataclass(frozen=True)
class Presentation:
    """How results are shown in reports, in the viewer and after a run.

    Example: `Presentation(figures=(Ranking("Ranking", Quantity("accuracy", "right answers")),))`
    """

    figures: tuple[Figure, ...] = ()  # what its report draws
    answers: Answers | None = None  # the columns by which models are compared sample by sample
    viewing: Viewing = field(default_factory=Viewing)  # how its answers are shown one by one
    queries: tuple[str, ...] = ()  # SQL to try after a run; $run stands for the run


@dataclass(frozen=True)
class Suite:
    """One evaluation suite, whole."""

    name: str
    title: str
    data: Data
    conversation: Conversation
    scoring: Scoring
    metrics: Metrics
    prompts: Prompts = field(default_factory=Prompts)
    presentation: Presentation = field(default_factory=Presentation)
    # Defaults of its section in the configuration. What is None is no part of a metric's definition until it is given.
    options: Options = field(default_factory=dict)
    people: Labelling | None = None  # None: people do not label its results through sheets
    calibration: Calibration | None = None  # None: no judgements are known by which judges could be measured
    roadmap: Roadmap | None = None  # None: its results name nothing that could be grouped

    def __post_init__(self) -> None:
        """Mark the table of results as this suite's, and show its column `correct` unless the suite says otherwise."""
        results = replace(self.scoring.results, suite=self.name)
        object.__setattr__(self, "scoring", replace(self.scoring, results=results))
        viewing = self.presentation.viewing
        if viewing.correct is None and "correct" in results.column:
            shown = replace(self.presentation, viewing=replace(viewing, correct=pl.col("correct")))
            object.__setattr__(self, "presentation", shown)

    def scored_by(self, version: str) -> "Suite":
        """Make the suite as it was when its scorer had this version."""
        return replace(self, scoring=replace(self.scoring, version=version))

    def all_metrics(self, options: Options) -> tuple[Metric, ...]:
        """List the suite's metrics under these options: its own, and those of usage that it does not declare."""
        own = self.metrics.own(options)
        return (*own, *usage_metrics(self.results, {metric.name for metric in own}))

    def recorded(self, line: Mapping[str, Any]) -> Recorded:
        """Read one decoded line of recorded results. Raises SourceError where it is bad."""
        if self.data.read_recorded is not None:
            return self.data.read_recorded(line)
        return read_recorded(self.name, line, is_judged=self.is_judged)

    @property
    def is_judged(self) -> bool:
        """Whether a judge model says what answers are worth; they are judged by rules otherwise."""
        return "judge" in self.results.column

    @property
    def results(self) -> Contract:
        """The table of its result rows."""
        return self.scoring.results

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """The tables of this suite alone."""
        return (self.results, *self.scoring.extra_tables)


def usage_metrics(results: Contract, declared: Container[str]) -> Iterator[Metric]:
    """Yield the totals of cost and tokens by the columns of the result rows, except those declared already."""
    costs = [name for name in ("cost_usd", "judge_cost_usd") if name in results.column]
    if costs and "cost_usd_total" not in declared:
        total = pl.sum_horizontal(map(pl.col, costs), ignore_nulls=False)
        yield Metric("cost_usd_total", Total(total), description="Null if any price is unknown.")
    for name in ("input_tokens", "output_tokens"):
        if name in results.column and name not in declared:
            yield Metric(name, Total(pl.col(name)), description="Null if any count is unknown.")
