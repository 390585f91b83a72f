"""Results that are a line a sample: `samples_TASK_*.jsonl` of lm-evaluation-harness, instances of Every Eval Ever."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalake.core.errors import SourceError
from evalake.models.request import Reply
from evalake.sdk.tool_results import Headline, Scored, ToolResults, ToolSample, as_score, decide, mean, standard_error
from evalake.suites.declared.formats import values
from evalake.suites.declared.formats.values import as_list, as_mapping, as_text, at, objects

# lm-eval: the lines of a task, with the `results_*.json` of the same evaluation.

_SAMPLE = {"doc_id", "doc", "resps", "filtered_resps"}
_FIELDS = _SAMPLE | {"arguments", "doc_hash", "filter", "metrics", "prompt_hash", "target", "target_hash"}


def is_sample(line: Any) -> bool:
    """Tell whether a decoded line is a sample of lm-eval."""
    return isinstance(line, dict) and line.keys() >= _SAMPLE


def is_results(document: Any) -> bool:
    """Tell whether a decoded JSON document is a results file of lm-eval."""
    return isinstance(document, dict) and document.keys() >= {"results", "configs", "lm_eval_version"}


def task_of(stem: str, results: Mapping[str, Any]) -> str | None:
    """Find the task of a samples file by its name: the longest task of the results that the name holds."""
    return max((task for task in as_mapping(results, "configs") if task in stem), key=len, default=None)


def read_samples(lines: Sequence[str], results: Mapping[str, Any], task: str, name: str) -> ToolResults:
    """Read a samples file: a sample a line. Raises SourceError where a line is no sample of lm-eval."""
    decoded = values.decoded_lines(lines, name)
    model = as_text(results, "model_name") or as_text(results, "model_source")
    if not model:
        raise SourceError(f"{name}: its results file names no model")
    if wrong := next((number for number, line in enumerate(decoded, start=1) if not is_sample(line)), None):
        raise SourceError(f"{name}:{wrong} is no sample of lm-eval: it lacks one of {', '.join(sorted(_SAMPLE))}")
    filters = {str(line.get("filter", "none")) for line in decoded}
    scorers = list(dict.fromkeys(str(scorer) for line in decoded for scorer in as_list(line, "metrics"))) or ["none"]
    samples = decide([_sample(line, model, scorers, len(filters) > 1) for line in decoded])
    left_over: Counter[str] = Counter()
    for line in decoded:
        values.count_further(line, {*_FIELDS, *as_list(line, "metrics")}, left_over)
        further = max(0, len(as_list(line, "resps.0")) - 1)
        if further and not _is_choice(line):
            left_over["further replies to a request"] += further
    return ToolResults(
        tool=f"lm-eval {results['lm_eval_version']}",
        task=task,
        evaluation=f"{results.get('date')} {model}",
        began=str(results.get("date") or ""),
        task_id=f"{results.get('date')} {task} {model}",
        dataset=task,
        samples=samples,
        headlines=_means(results, task, samples),
        left_over=left_over,
    )


def _sample(line: Mapping[str, Any], model: str, scorers: Sequence[str], names_filter: bool) -> ToolSample:
    """Read a line; one that lists no metric is scored by all `scorers` of its file, or unscored."""
    messages, is_choice = _messages(line), _is_choice(line)
    answer = None if is_choice else as_text(line, "filtered_resps.0")
    texts = [str(each["content"]) for each in messages] or [json.dumps(line["doc"], ensure_ascii=False)]
    return ToolSample(
        sample_id=str(line["doc_id"]),
        input="\n\n".join(texts),
        target={"target": line.get("target"), "doc": line["doc"]},
        model=model,
        messages=messages,
        reply=Reply(as_text(line["resps"] if is_choice else _first(line["resps"]))),
        scores=[
            Scored(scorer, line.get(scorer), as_score(line.get(scorer)), None, answer)
            for scorer in map(str, as_list(line, "metrics") or scorers)
        ],
        prompt_variant=str(line.get("filter", "none")) if names_filter else "direct",
        metadata=as_mapping(line, "doc"),
    )


def _arguments(line: Mapping[str, Any]) -> list[Any]:
    """List the arguments of the first request: what was asked, then a continuation or how to generate."""
    several = line.get("arguments")
    first = next(iter(several.values() if isinstance(several, dict) else as_list(several)), None)
    return list(first.values()) if isinstance(first, dict) else as_list(first)


def _is_choice(line: Mapping[str, Any]) -> bool:
    """Tell whether likelihoods of given continuations were asked for, and no text."""
    return not isinstance(at(_arguments(line), "1"), dict)


def _first(value: Any) -> Any:
    """Find the first of a list, or of the first list in it."""
    while isinstance(value, list):
        value = next(iter(value), None)
    return value


def _messages(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read what was asked: the messages of a chat, or the whole prompt as the user's."""
    asked = at(_arguments(line), "0")
    asked = at(asked, "0") if isinstance(asked, list) else asked
    return values.conversation(asked) if isinstance(asked, str) else []


def _means(results: Mapping[str, Any], task: str, samples: Sequence[ToolSample]) -> list[Headline]:
    """Recompute means and their standard errors by metric and filter."""
    declared = objects(as_mapping(as_mapping(results, "configs").get(task)), "metric_list")
    otherwise = {each.get("metric") for each in declared if each.get("aggregation", "mean") != "mean"}
    headlines = []
    for name, value in as_mapping(as_mapping(results, "results").get(task)).items():
        metric, comma, filtered = name.partition(",")
        said = as_score(value)
        if not comma or said is None:
            continue
        scorer = metric.removesuffix("_stderr")
        of_filter = [s for s in samples if s.prompt_variant in (filtered, "direct")]
        values = [e.score for s in of_filter for e in s.scores if e.scorer == scorer and e.score is not None]
        ours = None
        if scorer not in otherwise and len(values) == len(of_filter):
            ours = standard_error(values) if metric.endswith("_stderr") else mean(values)
        headlines.append(Headline(name, said, ours))
    return headlines


# Every Eval Ever: a line a sample and metric, with an aggregate beside them. Its schema is 0.3.0, or older.

_TURNS = ("single_turn", "multi_turn", "agentic")


def is_instance(line: Any) -> bool:
    """Tell whether a decoded line is an instance."""
    return (
        isinstance(line, dict)
        and line.get("interaction_type") in _TURNS
        and isinstance(line.get("evaluation"), dict)
        and {"model_id", "evaluation_name", "sample_id", "answer_attribution"} <= line.keys()
    )


def is_aggregate(document: Any) -> bool:
    """Tell whether a decoded document is an aggregate."""
    return isinstance(document, dict) and {"evaluation_results", "model_info", "source_metadata"} <= document.keys()


def read_instances(lines: Sequence[str], aggregate: Mapping[str, Any] | None, name: str) -> list[ToolResults]:
    """Read the instances of a file, as one evaluation a name. Raises SourceError where a line is none."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            if not is_instance(decoded := values.read_json(line, f"{name}:{number}")):
                raise SourceError(f"{name}:{number} is no instance of Every Eval Ever")
            by_name.setdefault(str(decoded["evaluation_name"]), []).append(decoded)
    return [_evaluation(task, instances, aggregate or {}) for task, instances in by_name.items()]


def _evaluation(task: str, instances: Sequence[Mapping[str, Any]], aggregate: Mapping[str, Any]) -> ToolResults:
    answers: dict[tuple[str, str, int], list[Mapping[str, Any]]] = {}
    repeats: Counter[tuple[str, str, str]] = Counter()
    for each in instances:
        whose, scorer = (str(each["sample_id"]), str(each["model_id"])), _scorer(each)
        answers.setdefault((*whose, repeats[*whose, scorer]), []).append(each)
        repeats[*whose, scorer] += 1
    in_order = {whose: place for place, whose in enumerate(dict.fromkeys(key[:2] for key in answers))}
    keys = sorted(answers, key=lambda key: (in_order[key[:2]], key[2]))
    samples = decide([_answer(*key, answers[key]) for key in keys])
    library = as_text(as_mapping(aggregate, "eval_library").get("name") or None)
    evaluation = str(instances[0].get("evaluation_id", task))
    return ToolResults(
        tool=f"Every Eval Ever ({library})" if library else "Every Eval Ever",
        task=task,
        evaluation=evaluation,
        began=as_text(aggregate, "evaluation_timestamp") or "",
        task_id=evaluation,
        dataset=task,
        samples=samples,
        headlines=list(_aggregated(task, samples, aggregate)),
        left_over=+Counter({"performance details": sum(bool(each.get("performance")) for each in instances)}),
    )


def _scorer(instance: Mapping[str, Any]) -> str:
    named = as_text(instance, "evaluation_result_id")
    return named or as_text(instance, "answer_attribution.0.extraction_method") or "score"


def _answer(sample_id: str, model: str, repeat: int, parts: Sequence[Mapping[str, Any]]) -> ToolSample:
    first = parts[0]
    messages = [values.chat_message(each) for each in objects(first, "messages")]
    texts = [each for each in as_list(first, "output.raw") if isinstance(each, str)]
    text = texts[-1] if texts else None
    if messages and messages[-1]["role"] == "assistant":
        text = messages.pop()["content"]
    elif not messages:
        asked = at(first, "input.formatted") or at(first, "input.raw")
        messages = [{"role": "user", "content": as_text(asked) or ""}]
    choices = at(first, "input.choices")
    reasoning = "\n".join(map(str, as_list(first, "output.reasoning_trace"))) or None
    return ToolSample(
        sample_id=sample_id,
        input=as_text(first, "input.raw") or "",
        target={"target": as_list(first, "input.reference"), **({"choices": choices} if choices else {})},
        model=model,
        messages=messages,
        reply=values.as_reply(text, first, values.TOOLS["every_eval_ever"]["numbers"], reasoning=reasoning),
        scores=[_scored(each) for each in parts],
        repeat=repeat,
        metadata=as_mapping(first, "metadata"),
        error=as_text(first, "error"),
    )


def _scored(instance: Mapping[str, Any]) -> Scored:
    value, correct = at(instance, "evaluation.score"), at(instance, "evaluation.is_correct")
    ends = [each for each in objects(instance, "answer_attribution") if each.get("is_terminal")]
    answer = as_text(ends[-1], "extracted_value") if ends else None
    return Scored(_scorer(instance), value, as_score(value), correct if isinstance(correct, bool) else None, answer)


def _aggregated(task: str, samples: Sequence[ToolSample], aggregate: Mapping[str, Any]) -> Iterator[Headline]:
    """Recompute the means that an aggregate says; None where its results are not told apart."""
    mine = [each for each in objects(aggregate, "evaluation_results") if each.get("evaluation_name") == task]
    for each in mine:
        said, scorer = as_score(at(each, "score_details.score")), as_text(each, "evaluation_result_id")
        scores = [scored for sample in samples for scored in sample.scores if scored.score is not None]
        values = [of.score for of in scores if of.score is not None and (of.scorer == scorer or len(mine) == 1)]
        kind = as_text(each, "metric_config.metric_kind")
        known = kind in (None, "accuracy", "mean", "exact_match")
        if said is not None:
            yield Headline(f"{scorer or kind or 'score'} of {task}", said, mean(values) if known else None)
