"""The suite of results that another tool scored: one for each task, all of one shape.

A result row is what one scorer said of one answer; the scorer stands where other suites have a judge. Nothing is asked.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, NoReturn

import polars as pl
from pydantic import Field

from evalake import sdk
from evalake.contracts.rule import Kind, Rule
from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash, plain
from evalake.metrics.compute import Metric
from evalake.metrics.estimators import Mean, Rate, Total
from evalake.models.request import Reply, Request
from evalake.sdk.figures import Answers, ByJudge, HeatMap, Quantity, Ranking, Unit
from evalake.sdk.json_in_text import json_object
from evalake.sdk.people import YES_NO, Correction, by_answers, of_result, people_figures, yes_no
from evalake.sdk.sources import as_json, storable
from evalake.sdk.tool_results import Answered, Scored, ToolResults, ToolSample
from evalake.suites.declared.file import SuiteFile
from evalake.suites.declared.make import make

SCORER_VERSION = "1"
LONGEST_NAME = 60
UNSCORED = ("error", "unscored")

_DECIDES = pl.any_horizontal(pl.col("score", "correct").is_not_null())
_IS_DECIDED = _DECIDES.any().over("model", "dataset")  # by a scorer; beside it, another's words are categories
_NO_VERDICT = pl.when(~_DECIDES & ~_IS_DECIDED).then(pl.lit("no verdict"))
"""Why a row is missing though its scorer gave a word: no scorer of the model's answers gave a number, or yes or no."""

_SAID = ("value", "score", "correct", "answer", "explanation")  # of a scorer, beside an error
_SLICES = ("all", "dataset", "prompt_type", "category")


class ImportedResult(sdk.JudgedRow, sdk.ReplyColumns):
    """What one scorer of another tool said of one answer."""

    category: str | None = Field(description="The sample's category in its metadata; null where it has none.")
    input: str = Field(description="What was asked.")
    target: str | None = Field(description="JSON: the expected answer, with choices or assertions.")
    metadata: str | None = Field(description="JSON: what the tool knew of the sample.")
    reply: str | None = Field(description="The model's last answer; null where none came.")
    correct: bool | None = Field(description="Whether the scorer calls it right; null where its score is no yes or no.")
    score: float | None = Field(description="The scorer's value as a number; null where it is none.")
    value: str | None = Field(description="The scorer's value as the tool wrote it.")
    answer: str | None = Field(description="The answer as the scorer read it.")
    explanation: str | None = Field(description="The scorer's explanation.")
    error_kind: Literal["error", "unscored"] | None = Field(description="Why there is no score; null where there is.")
    error: str | None = Field(description="What went wrong, in the tool's words.")


def suite_name(task: str) -> str:
    """Name the suite of a task: in lower-case letters, digits and underscores."""
    name = re.sub(r"[^a-z0-9]+", "_", task.lower()).strip("_")[:LONGEST_NAME].strip("_")
    if not name:
        raise SourceError(f"the task {task!r} gives no name for a suite: name one with --suite")
    name = name if name[0].isalpha() else f"task_{name}"
    return f"{name}_task" if name.split("_")[-1] == "run" else name  # views of results end with `run_results`


@cache
def imported_suite(name: str) -> sdk.Suite:
    """Make the suite of imported results of this name."""
    labelling = _labelling(name)
    return sdk.Suite(
        name=name,
        title=f"Imported: {name}",
        data=sdk.Data(read=_no_source, read_answers=lambda answers: recorded(name, answers)),
        conversation=sdk.Conversation(next_request=_ask_nothing),
        scoring=sdk.Scoring(
            score=lambda item, answered, options: {f"{name}_results": [_row(item, answered)]},
            version=SCORER_VERSION,
            results=sdk.result_contract(
                f"{name}_results",
                ImportedResult,
                (Rule("no_score_in_error", "score", Kind.ABSENT_WHEN, {"other": "error_kind", "values": UNSCORED}),),
            ),
            outcomes=sdk.Outcomes(missing=pl.coalesce("error_kind", _NO_VERDICT)),
        ),
        metrics=sdk.Metrics(
            own=lambda options: _METRICS,
            headline=("accuracy", "score"),
            corrected={"accuracy": Correction(by_answers("answer_right", pl.col("correct")))},
            unmeasured=("input", "target", "metadata", "reply", "value", "answer", "explanation", "error"),
        ),
        presentation=sdk.Presentation(
            figures=(
                Ranking("Ranking", _ACCURACY, (_SCORE,), note="By scorer: the rate of right answers, the mean score."),
                ByJudge("Right answers by scorer", _ACCURACY),
                HeatMap("Right answers by category", _ACCURACY, "category", counted=True, of_several=True),
                HeatMap("Right answers by prompt", _ACCURACY, "prompt_type", counted=True, of_several=True),
                *people_figures(labelling),
            ),
            answers=Answers(label=None, group="category", shown=(("input", "input"), ("reply", "reply"))),
            viewing=sdk.Viewing(
                verdict=pl.coalesce("value", "error_kind"),
                correct=pl.col("correct"),
                score=pl.col("score"),
                error=pl.coalesce("error", "error_kind"),
                shown=tuple((n, n) for n in ("value", "answer", "explanation", "target", "metadata", "error")),
            ),
            queries=(
                f"select model, judge as scorer, avg(score) as score, count(*) as n from {name}_run_results "
                "where run_id = $run group by all order by all",
            ),
        ),
        people=labelling,
    )


@cache
def suite_without_file(name: str, judged: bool) -> sdk.Suite:
    """Make the suite of results whose declaring file is not here: they are read and measured, and nothing is asked."""
    lacks = f"the file of the suite {name} is not here: list its folder in suite_paths, and trust it"
    score = {"kind": "judge", "rubric": "?", "form": {"right": "yes/no"}} if judged else "unknown"
    told = {"name": name, "prompt": "{{ input }}", "score": score, "samples": [{"input": name}]}
    suite = make(SuiteFile.model_validate(told))

    def refuse(*_: object) -> NoReturn:
        raise SourceError(lacks)

    return replace(
        suite,
        data=sdk.Data(read=refuse),
        conversation=sdk.Conversation(next_request=refuse),
        scoring=replace(suite.scoring, score=refuse),
    )


def recorded(name: str, answers: Sequence[Answered]) -> Iterator[tuple[str, sdk.Recorded]]:
    """Yield a recorded result for each scorer of each answer, with a place by which it is named."""
    for each in answers:
        sample = each.sample
        where = f"{each.results.tool} {each.results.task} {sample.sample_id}"
        about = sdk.Sample(
            name,
            each.results.dataset,
            storable(sample.sample_id),
            storable(sample.input),
            as_json(plain({"target": sample.target, "metadata": sample.metadata})),
            category=category if isinstance(category := sample.metadata.get("category"), str) else None,
        )
        asked = content_hash(
            ["imported", name, each.evaluation, about.sample_hash, sample.model, sample.prompt_variant]
        )
        for scored in sample.scores:
            item = sdk.Item(about, sample.model, storable(scored.scorer), sample.prompt_variant, sample.repeat)
            hashes = asked, content_hash([asked, scored.scorer])
            said = _said(sample, scored)
            failed = "error" if said["error"] is not None and not _has_failed(sample) else None
            replies = _answer(sample), Reply(as_json(plain(said)), error_kind=failed)
            requests = request_of(sample), as_json({"scorer": scored.scorer, "tool": each.results.tool})
            yield where, sdk.Recorded(item, hashes, replies, requests)


def metadata_of(target: str | None) -> Mapping[str, Any]:
    """Read from the target of an imported sample what its tool knew of it: further columns."""
    known = (json_object(target or "") or {}).get("metadata")
    return known if isinstance(known, dict) else {}


def request_of(sample: ToolSample) -> str:
    """Write the conversation before the last answer as a request, with the calls of tools in it."""
    return as_json(plain({"model": sample.model, "messages": list(sample.messages)}))


def _has_failed(sample: ToolSample) -> bool:
    """Tell whether a sample as a whole has an error and no score, whichever scorer is asked."""
    return sample.error is not None and all(each.score is None for each in sample.scores)


def _answer(sample: ToolSample) -> Reply:
    reply = sample.reply
    return replace(
        reply,
        text=None if reply.text is None else storable(reply.text),
        reasoning=None if reply.reasoning is None else storable(reply.reasoning),
        error_kind="error" if _has_failed(sample) else None,
    )


def _said(sample: ToolSample, scored: Scored) -> dict[str, Any]:
    said = {name: getattr(scored, name) for name in _SAID}
    return {**said, "error": (scored.error or sample.error) if scored.score is None else None}


def _row(item: sdk.Item, answered: Sequence[sdk.Exchange]) -> dict[str, Any]:
    reply, judged, said = answered[0].outcome, answered[1].outcome, _decoded(answered[1])
    assert isinstance(reply, Reply)
    assert isinstance(judged, Reply)
    given = json.loads(item.sample.target or "{}")
    value, scored = said.get("value"), said.get("score") is not None or said.get("value") is not None
    return {
        **{name: said.get(name) for name in (*_SAID, "error")},
        **sdk.identity_columns(item, answered, SCORER_VERSION),
        "category": item.sample.category,
        "input": item.sample.input,
        "target": as_json(given.get("target")),
        "metadata": as_json(given.get("metadata")),
        "reply": reply.text,
        "value": value if value is None or isinstance(value, str) else as_json(value),
        "error_kind": reply.error_kind or judged.error_kind or (None if scored else "unscored"),
        **sdk.reply_columns(reply),
    }


def _decoded(exchange: sdk.Exchange) -> dict[str, Any]:
    outcome = exchange.outcome
    decoded = json.loads(outcome.text or "{}") if isinstance(outcome, Reply) else {}
    return decoded if isinstance(decoded, dict) else {}


def _no_source(source: str) -> sdk.Dataset:
    raise SourceError(f"this suite has results of another tool and asks nothing: {source} cannot be its dataset")


def _ask_nothing(item: sdk.Item, answered: Sequence[sdk.Exchange], options: sdk.Options) -> Request | None:
    raise SourceError(f"{item.sample.suite} has results of another tool, and no prompt: it cannot be run")


_METRICS = (
    Metric("accuracy", Rate(pl.col("correct")), slices=_SLICES),
    Metric("score", Mean(pl.col("score")), slices=_SLICES, description="Mean of the scorer's values."),
    Metric("cost_usd_total", Total(pl.col("cost_usd")), description="Null if any price is unknown."),
    Metric("latency_ms_mean", Mean(pl.col("latency_ms"), low=0)),
)
_ACCURACY = Quantity("accuracy", "right answers")
_SCORE = Quantity("score", "mean score", Unit.SCORE)


def _labelling(name: str) -> sdk.Labelling:
    right = sdk.Question(
        "answer_right",
        "Is the answer right?",
        YES_NO,
        help="Leave it empty where nobody can say.",
        told={"judge": yes_no(pl.col("correct"))},
    )
    shown = {column: of_result(column) for column in ("input", "target", "reply")}
    return sdk.Labelling(name, (sdk.Stage((right,), shown, words="One answer of a model."),))


# Several results of one task: retried samples take the place of what failed, repeats are numbered on.

RETRIED = "answers that a retry replaced"
REPEATED = "answers that several files hold"


@dataclass
class _Round:
    """An evaluation of a task by a model, with its retries."""

    first: ToolResults
    offset: int
    answers: dict[tuple[str, int], Answered] = field(default_factory=dict)

    @property
    def ids(self) -> set[str]:
        return {sample_id for sample_id, _ in self.answers}

    def is_retried_by(self, other: ToolResults, ids: set[str]) -> bool:
        """Tell whether it goes on with this round: it says so, or has only a part of it, or only what it lacks."""
        if other.task_id and other.task_id == self.first.task_id:
            return True
        return ids < self.ids or ids.isdisjoint(self.ids)


def merge(all_results: Sequence[ToolResults]) -> tuple[list[Answered], Counter[str]]:
    """Merge results by dataset, model and prompt, the earliest first; returns the answers, and what was left out."""
    rounds: dict[tuple[str, ...], list[_Round]] = {}
    left_out: Counter[str] = Counter()
    for results in sorted(all_results, key=lambda each: (each.began, each.evaluation)):
        by_prompt: dict[tuple[str, str], list[ToolSample]] = {}
        for sample in results.samples:
            by_prompt.setdefault((sample.model, sample.prompt_variant), []).append(sample)
        for whose, samples in by_prompt.items():
            _add_to_round(rounds.setdefault((results.task, results.dataset, *whose), []), results, samples, left_out)
    answers = [answer for known in rounds.values() for each in known for answer in each.answers.values()]
    return sorted(_with_shared_metadata(answers, left_out), key=_place), left_out


def _with_shared_metadata(answers: Sequence[Answered], left_out: Counter[str]) -> Iterator[Answered]:
    """Leave out metadata in which the answers of a sample differ, like times: it is not of the sample."""
    known: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for each in answers:
        known.setdefault(_asked(each), []).append(each.sample.metadata)
    shared = {
        asked: {name for name in first if all(name in one and one[name] == first[name] for one in others)}
        for asked, (first, *others) in known.items()
    }
    for each in answers:
        metadata = {name: of for name, of in each.sample.metadata.items() if name in shared[_asked(each)]}
        differ = each.sample.metadata.keys() - metadata.keys()
        left_out.update(f"values of {name}, which differ by answer" for name in differ)
        yield replace(each, sample=replace(each.sample, metadata=metadata))


def _asked(answer: Answered) -> tuple[str, ...]:
    return answer.results.dataset, answer.sample.sample_id, answer.sample.input


def absent(all_results: Sequence[ToolResults], answers: Sequence[Answered]) -> Counter[tuple[str, str]]:
    """Count by model and dataset the answers that logs which did not end lack, also after their retries."""
    rounds: dict[tuple[str, ...], list[Answered]] = {}
    for each in answers:
        whose = each.sample.model, each.results.dataset, each.sample.prompt_variant, each.evaluation
        rounds.setdefault(whose, []).append(each)
    lacks: Counter[tuple[str, str]] = Counter()
    for (model, dataset, *_), own in rounds.items():
        lacks[model, dataset] += max(0, max(each.results.planned for each in own) - len(own))
    begun = {each.task_id for each in all_results if each.samples}
    for results in all_results:
        lacks["", results.dataset] += 0 if results.task_id in begun else results.planned
    return +lacks


def _place(answer: Answered) -> tuple[str, str, str, str, int]:
    """Order answers, for any order in their files: the same samples are the same version of a dataset."""
    sample = answer.sample
    return answer.results.dataset, sample.sample_id, sample.model, sample.prompt_variant, sample.repeat


def _add_to_round(
    known: list[_Round], results: ToolResults, samples: Sequence[ToolSample], left_out: Counter[str]
) -> None:
    ids = {sample.sample_id for sample in samples}
    ours = next((each for each in reversed(known) if each.is_retried_by(results, ids)), None)
    if ours is None:
        used = [answer.sample.repeat for each in known for answer in each.answers.values()]
        ours = _Round(results, max(used, default=-1) + 1)
        known.append(ours)
    for sample in samples:
        key = (sample.sample_id, sample.repeat)
        earlier = ours.answers.get(key)
        if earlier is not None:
            is_same = earlier.sample.reply.text == sample.reply.text and earlier.sample.error == sample.error
            left_out[REPEATED if is_same else RETRIED] += 1
            if is_same or (is_answered(earlier.sample) and not is_answered(sample)):
                continue
        numbered = replace(sample, repeat=sample.repeat + ours.offset)
        ours.answers[key] = Answered(numbered, results, ours.first.evaluation)


def is_answered(sample: ToolSample) -> bool:
    """Tell whether a sample has an answer: no error, and a reply with a text."""
    return sample.error is None and bool(sample.reply.text and sample.reply.text.strip())
