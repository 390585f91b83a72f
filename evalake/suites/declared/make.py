"""The suite that a file declares: its table, conversation, scores, metrics and how they are shown."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import Field

from evalake import sdk
from evalake.contracts.contract import Contract
from evalake.contracts.rule import is_share, not_blank
from evalake.core.errors import SuiteError
from evalake.metrics.compute import Metric
from evalake.metrics.estimator import Estimator
from evalake.metrics.estimators import Mean, Rate
from evalake.models.request import Baseline, Reply, Request
from evalake.sdk.figures import Answers, Bars, Figure, HeatMap, Quantity, Ranking, Unit
from evalake.sdk.people import ANSWER, YES_NO, Correction, by_answers, of_result, yes_no
from evalake.sdk.results import read_recorded
from evalake.sdk.sources import as_text, storable
from evalake.suites.declared import samples, scorers
from evalake.suites.declared.file import FIELDS, SuiteFile, read_suite_file
from evalake.suites.declared.parts import Scorer
from evalake.suites.declared.replies import read_answer
from evalake.suites.declared.scorers import Scored

UNMEASURED = ("input", "answer", "reasons")
"""Columns of result rows that no metric reads; a slice of such a name is the dataset's column, where it has one."""


_UNDECIDED = pl.when(pl.col("correct").is_null()).then(pl.coalesce("unreadable", pl.lit("no verdict")))
"""Why a row is missing: no metric of right answers counts it, because a judge's form or a scorer says nothing."""


class _Columns(sdk.ReplyColumns):
    """What an answer is worth."""

    input: str = Field(description="What was asked, without system text and examples.")
    target: str | None = Field(description="What is expected, as text; null where the sample has no target.")
    label: str | None = Field(description="The sample's label.")
    category: str | None = Field(description="The sample's category.")
    severity: str | None = Field(description="The sample's severity.")
    difficulty: str | None = Field(description="The sample's difficulty.")
    answer: str | None = Field(description="The answer as it was read; null where none could be read.")
    unreadable: str | None = Field(description="Why no answer, or no judgement, could be read; null where one could.")
    correct: bool | None = Field(description="Whether every scorer found it right; null where one could not say.")
    score: float | None = Field(description="Mean of the scorers' values by weight, 0 to 1; null where one has none.")
    scores: str = Field(description="JSON: the value of each scorer, 0 to 1; null where it could not say.")
    passed: str = Field(description="JSON: whether each scorer found it right.")
    reasons: str = Field(description="JSON: what scorers said, and what judges filled in, by scorer.")
    columns: str = Field(description="JSON: the sample's further columns.")
    finish_reason: str | None = Field(description="Why the model stopped, in its provider's words.")


class DeclaredResult(sdk.ResultRow, _Columns):
    """One answer to one sample."""


class JudgedDeclaredResult(sdk.JudgedRow, _Columns):
    """One answer to one sample, as one judge saw it."""


def load(path: Path) -> sdk.Suite:
    """Make the suite of a file. Raises SuiteError where the file says something that cannot be."""
    return make(read_suite_file(path))


def make(file: SuiteFile) -> sdk.Suite:
    """Make the suite of what a file says."""
    talk = Talk(file)
    results = _contract(file)
    version = f"{file.version}-{scorers.scoring_hash(file)}"
    own = {f"{file.called}-{name}": text for name, text in file.baselines.items()}
    return sdk.Suite(
        name=file.called,
        title=file.title or file.called.replace("_", " ").capitalize(),
        data=sdk.Data(
            read=samples.Samples(file, talk.flaw),
            starter=file.sources,
            folders=False,
            read_recorded=partial(_read_recorded, file),
        ),
        conversation=sdk.Conversation(
            next_request=talk.next_request,
            baselines={name: _always(text) for name, text in own.items()},
            default_models=file.default_models,
            default_judges=file.full_names(file.judges),
            judge_parameters=scorers.parameters_of(file.judges_by_model),
        ),
        prompts=sdk.Prompts(types=tuple(file.prompts), usual=len(file.prompts) if file.every_prompt else 1),
        scoring=sdk.Scoring(
            score=partial(_score, talk, results.table, version),
            version=version,
            results=results,
            outcomes=sdk.Outcomes(missing=_UNDECIDED, without_verdict=pl.col("unreadable")),
            derive=partial(scorers.derive, results.table) if file.panel else None,
        ),
        metrics=_metrics(file),
        presentation=_presentation(file, talk),
        options={} if file.target is None else {"target": file.target},
        people=_labelling(file),
    )


def _contract(file: SuiteFile) -> Contract:
    judged = bool(file.judges_by_model)
    row = JudgedDeclaredResult if judged else DeclaredResult
    table = f"{file.called}_results"
    return sdk.result_contract(
        table, row, [not_blank("input"), is_share("score")], description=f"{file.title or table}."
    )


def _always(text: str) -> Baseline:
    return lambda _: text


def _read_recorded(file: SuiteFile, line: Mapping[str, Any]) -> sdk.Recorded:
    columns = line.get("columns")
    plain = {name: value for name, value in line.items() if name != "columns"}
    if isinstance(plain.get("input"), str):
        plain["input"] = samples.packed_input(plain["input"], columns if isinstance(columns, dict) else {})
    return read_recorded(file.called, plain, is_judged=bool(file.judges_by_model))


class Talk:
    """The conversation about a sample: the model is asked, then a judge for each scorer that needs one."""

    def __init__(self, file: SuiteFile) -> None:
        self.file = file
        self.prompter = samples.Prompter(file)
        own = {*JudgedDeclaredResult.model_fields} - {*FIELDS, *UNMEASURED}
        self._ambiguous = own.intersection(file.slices)

    def flaw(self, columns: Mapping[str, Any]) -> str | None:
        """Say why a sample with these columns is none: no prompt, or a slice that would be of a result's own column."""
        if taken := self._ambiguous & columns.keys():
            return f"slices names {min(taken)!r}, which results have, too: rename the dataset's column"
        return self.prompter.flaw(columns)

    def next_request(self, item: sdk.Item, answered: Sequence[sdk.Exchange], options: sdk.Options) -> Request | None:
        """Build the next request; None at the end."""
        columns = samples.row_of(item.sample, self.file)
        if not answered:
            return Request(item.model, self.prompter.messages(item.prompt_type, columns), self.file.parameters)
        if item.judge is None or not isinstance(answered[-1].outcome, Reply):
            return None
        left = self.judging(columns, answered)[len(answered) - 1 :]
        if not left:
            return None
        asked = self.prompter.asked(item.prompt_type, columns)
        return Request(item.judge, scorers.question(left[0], columns, asked, _text_of(answered[0])), {})

    def shown(self, sample: sdk.Sample, prompt_type: str | None = None) -> str:
        """Write a sample for people: as a prompt asks about it, or its columns where that cannot be written."""
        try:
            return self.prompter.asked(prompt_type or next(iter(self.file.prompts)), samples.row_of(sample, self.file))
        except SuiteError:
            return samples.shown_input(sample)

    def judging(self, columns: Mapping[str, Any], answered: Sequence[sdk.Exchange]) -> list[Scorer]:
        """List the scorers that ask a judge about this answer; an empty one is not judged."""
        if not _text_of(answered[0]).strip():
            return []
        return [each for each in self.file.judges_by_model if scorers.applies(each, columns)]


def _text_of(exchange: sdk.Exchange) -> str:
    return (exchange.outcome.text or "") if isinstance(exchange.outcome, Reply) else ""


def _score(
    talk: Talk, table: str, version: str, item: sdk.Item, answered: Sequence[sdk.Exchange], options: sdk.Options
) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Make the row of a conversation; none where a call was given up on, so that a retry asks again."""
    replies = [each.outcome for each in answered if isinstance(each.outcome, Reply)]
    columns = samples.row_of(item.sample, talk.file)
    if not replies or len(replies) < 1 + len(talk.judging(columns, answered)):
        return {}
    sample, (_, others) = item.sample, samples.unpacked(item.sample.input)
    answer = read_answer(replies[0].text, talk.file.reply, is_cut=replies[0].is_cut_off)
    scored = scores_of(talk.file, columns, replies)
    judged = any(each.why == scorers.UNREADABLE for each in scored.values())
    row = {
        **sdk.identity_columns(item, answered, version),
        "input": storable(talk.shown(sample, item.prompt_type)) or sample.sample_id,
        "target": as_text(samples.target_of(sample)),
        **{name: getattr(sample, name) for name in ("label", "category", "severity", "difficulty")},
        "answer": None if answer.text is None else storable(answer.text),
        "unreadable": answer.unreadable or (scorers.UNREADABLE if judged else None),
        **totals(talk.file, scored),
        "scores": _json({name: each.value for name, each in scored.items()}),
        "passed": _json({each.called: right(each, scored[each.called]) for each in _used(talk.file, scored)}),
        "reasons": _json({name: _said(each) for name, each in scored.items() if each.why or each.form}),
        "columns": _json(others),
        "finish_reason": replies[0].finish_reason,
        **sdk.reply_columns(replies[0]),
    }
    return {table: [row]}


def scores_of(file: SuiteFile, columns: Mapping[str, Any], replies: Sequence[Reply]) -> dict[str, Scored]:
    """Score a model's reply, the first, by every scorer that applies; the judges' replies follow in their order."""
    answer = read_answer(replies[0].text, file.reply, is_cut=replies[0].is_cut_off)
    judgements = iter(replies[1:])
    scored = {}
    for scorer in file.scorers:
        if not scorers.applies(scorer, columns):
            continue
        if scorer.kind == "judge":
            judgement = next(judgements, None)
            scored[scorer.called] = (
                Scored(0.0, "the reply is empty") if judgement is None else scorers.read_form(scorer, judgement.text)
            )
        elif answer.unreadable is not None:
            scored[scorer.called] = Scored(0.0, f"no answer was read: {answer.unreadable}")
        else:
            case = scorers.Case(answer, replies[0].text or "", columns, scorers.expected_of(scorer, columns))
            scored[scorer.called] = scorers.score_by_rules(scorer, file, case)
    if not scored:
        raise SuiteError(f"no scorer of {file.called} applies to the sample: look at their where")
    return scored


def right(scorer: Scorer, scored: Scored) -> bool | None:
    """Tell whether a scorer found an answer right; None where it could not say."""
    if scored.right is not None or scored.value is None:
        return scored.right
    return scored.value >= scorer.least - 1e-9


def totals(file: SuiteFile, scored: Mapping[str, Scored]) -> dict[str, Any]:
    """Compute `correct` and `score` of an answer from its scorers."""
    used = _used(file, scored)
    verdicts = [right(each, scored[each.called]) for each in used]
    values = [scored[each.called].value for each in used]
    known = [value for value in values if value is not None]
    weighed = sum(value * each.weight for value, each in zip(known, used, strict=False))
    mean = weighed / sum(each.weight for each in used) if len(known) == len(values) else None
    correct = False if False in verdicts else None if None in verdicts else True
    if file.pass_from is not None:
        correct = None if mean is None else mean >= file.pass_from - 1e-9
    return {"correct": correct, "score": mean}


def _used(file: SuiteFile, scored: Mapping[str, Scored]) -> list[Scorer]:
    return [each for each in file.scorers if each.called in scored]


def _said(scored: Scored) -> Any:
    return {"why": scored.why, **scored.form} if scored.form else scored.why


def _json(value: Any) -> str:
    return storable(json.dumps(value, ensure_ascii=False, default=str))


# What is measured: right answers, scores, and chances over repeats, by any column of the dataset.


def _metrics(file: SuiteFile) -> sdk.Metrics:
    slices = ("all", "dataset", *(("prompt_type",) if len(file.prompts) > 1 else ()), *file.slices)
    version = 2 if {*UNMEASURED}.intersection(file.slices) else 1  # 2: such a slice is the dataset's column
    newer = {"unreadable_rate": 1} if file.panel else {}  # a tie of judges counts as read
    own = tuple(
        replace(_metric(name, tuple(dict.fromkeys(slices))), version=version + newer.get(name, 0))
        for name in file.metrics
    )
    unmeasured = tuple(name for name in UNMEASURED if name not in file.slices)
    by_people = Correction(by_answers("right", pl.col("correct")))
    return sdk.Metrics(
        own=lambda _: own,
        headline=tuple(metric.name for metric in own),
        repeated=pl.col("correct"),
        unmeasured=unmeasured,
        join_inputs=partial(_with_columns, file),
        corrected={"accuracy": by_people} if file.judges_by_model and "accuracy" in file.metrics else {},
    )


_UNREADABLE = pl.col("unreadable").fill_null(scorers.UNDECIDED) != scorers.UNDECIDED
_METRICS: Mapping[str, tuple[Estimator, str]] = {
    "accuracy": (Rate(pl.col("correct")), "Answers that every scorer found right."),
    "mean_score": (Mean(pl.col("score"), low=0, high=1), "Mean of the scores."),
    "unreadable_rate": (Rate(_UNREADABLE), "No answer, or no judgement, could be read."),
}


def _metric(name: str, slices: tuple[str, ...]) -> Metric:
    if name.startswith("pass"):
        return _over_repeats(name, slices)
    kind, _, scorer = name.partition("_")
    own: tuple[Estimator, str] = Rate(pl.col(f"passed {scorer}")), f"Right by the scorer {scorer}."
    if kind == "score":
        own = Mean(pl.col(f"score {scorer}"), low=0, high=1), f"Mean value of the scorer {scorer}."
    estimator, description = _METRICS.get(name, own)
    return Metric(name, estimator, slices=slices, description=description)


def _over_repeats(name: str, slices: tuple[str, ...]) -> Metric:
    """Declare pass@k, the chance that one of k repeats is right, or pass^k, that all are (both without bias).

    One row stands for all repeats of a sample; it is null where they are fewer than k.
    """
    k, every = int(name[5:]), name[4] == "^"
    same = ["model", "judge", "sample_hash", "prompt_type"]
    correct = pl.col("correct")
    known, hits = correct.is_not_null().sum().over(same), correct.sum().over(same)
    among = hits if every else known - hits
    chance = pl.lit(1.0)
    for index in range(k):
        chance = chance * ((among - index).clip(lower_bound=0) / (known - index))
    first = pl.col("replicate") == pl.col("replicate").min().over(same)
    value = pl.when(known >= k).then(chance if every else 1 - chance)
    words = "all are" if every else "one is"
    return Metric(
        f"pass_{'all' if every else 'at'}_{k}",
        Mean(value, where=first, low=0, high=1),
        slices=slices,
        description=f"Chance that of {k} repeats {words} right; null with fewer repeats.",
    )


def _with_columns(file: SuiteFile, rows: pl.LazyFrame, _: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Give rows the columns that metrics and slices read: values of scorers, and further columns of samples."""
    there = set(rows.collect_schema().names())
    fields = {column: field for field, column in file.columns.items()}
    added = {}
    for scorer in file.scorers:
        path = f"$['{scorer.called}']"
        added[f"score {scorer.called}"] = pl.col("scores").str.json_path_match(path).cast(pl.Float64, strict=False)
        added[f"passed {scorer.called}"] = pl.col("passed").str.json_path_match(path) == "true"
    for name in file.slices:
        if name not in there or (name in UNMEASURED and name not in FIELDS):
            field = fields.get(name)
            quoted = name.replace("\\", "\\\\").replace("'", "\\'")
            further = pl.col("columns").str.json_path_match(f"$['{quoted}']")
            own = [further, *([pl.col(name)] if name in there else [])]
            added[name] = pl.col(field) if field in there else pl.coalesce(own)
    return rows.with_columns(**added)


# How results are shown: reports, the viewer, questions to people.

LONGEST_VERDICT = 40  # characters of an answer that is shown as the verdict

ACCURACY = Quantity("accuracy", "right answers")
SCORE = Quantity("mean_score", "mean score", Unit.SCORE)
UNREADABLE_RATE = Quantity("unreadable_rate", "unreadable", higher_is_better=False)


def _quantity(name: str) -> Quantity:
    known = {each.metric: each for each in (ACCURACY, SCORE, UNREADABLE_RATE)}
    shown = _metric(name, ("all",)).name
    return known.get(name) or Quantity(shown, name.replace("_", " "), Unit.SCORE if "score" in name else Unit.SHARE)


def _presentation(file: SuiteFile, talk: Talk) -> sdk.Presentation:
    first, *others = map(_quantity, file.metrics)
    figures: list[Figure] = [Ranking("Ranking", first, tuple(others))]
    rates = [Quantity(f"accuracy_{each.called}", each.called) for each in file.scorers]
    shown = tuple(each for each in rates if each.metric in file.metrics)
    if shown:
        figures.append(Bars("Right answers by scorer", shown))
    figures += [HeatMap(f"{first.label.capitalize()} by {name}", first, name, counted=True) for name in file.slices]
    told = (("input", "sample"), ("answer", "answer"), ("target", "expected"), ("reasons", "why"))
    return sdk.Presentation(
        figures=tuple(figures),
        answers=Answers(label=None, shown=told),
        viewing=sdk.Viewing(
            verdict=pl.when(pl.col("answer").str.len_chars() <= LONGEST_VERDICT).then("answer"),
            correct=pl.col("correct"),
            score=pl.col("score"),
            error=pl.col("unreadable"),
            shown=(("answer", "answer"), ("target", "expected"), ("scores", "scores"), ("reasons", "why")),
            input_text=talk.shown,
            input_brief=samples.brief_input,
        ),
        queries=(
            f"select model, input, answer, target from {file.called}_run_results where run_id = $run and not correct",
        ),
    )


def _labelling(file: SuiteFile) -> sdk.Labelling:
    teller = "judge" if file.judges_by_model else "model"
    asked = sdk.Question("right", "Is the answer right?", YES_NO, told={teller: yes_no(pl.col("correct"))})
    shown = {name: of_result(name) for name in ("input", "target", "answer")}
    return sdk.Labelling(file.called, (sdk.Stage((asked,), shown),), unit=ANSWER)
