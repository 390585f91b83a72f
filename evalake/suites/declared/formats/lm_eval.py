"""Read results of lm-evaluation-harness: `samples_TASK_*.jsonl` with the `results_*.json` of the same evaluation."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.core.errors import SourceError
from evalake.models.request import Reply
from evalake.sdk.tool_results import (
    Headline,
    Scored,
    ToolResults,
    ToolSample,
    as_score,
    decide,
    mean,
    standard_error,
)
from evalake.suites.declared.formats.values import as_list, as_mapping, as_text, chat_message, read_json

_SAMPLE = {"doc_id", "doc", "resps", "filtered_resps"}


def is_sample(line: Any) -> bool:
    """Tell whether a decoded line is a sample of lm-eval."""
    return isinstance(line, dict) and line.keys() >= _SAMPLE


def is_results(document: Any) -> bool:
    """Tell whether a decoded JSON document is a results file of lm-eval."""
    return isinstance(document, dict) and "lm_eval_version" in document and "results" in document


def task_of(stem: str, results: Mapping[str, Any]) -> str | None:
    """Find the task of a samples file by its name: the longest task of the results that the name holds."""
    tasks = [task for task in as_mapping(results.get("configs")) if task in stem]
    return max(tasks, key=len, default=None)


def read(lines: Sequence[str], results: Mapping[str, Any], task: str, name: str) -> ToolResults:
    """Read the lines of a samples file. Raises SourceError where one is no sample of lm-eval."""
    model = as_text(results.get("model_name")) or as_text(results.get("model_source"))
    if not model:
        raise SourceError(f"{name}: its results file names no model")
    decoded = [read_json(line, f"{name}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if wrong := next((number for number, line in enumerate(decoded, start=1) if not is_sample(line)), None):
        raise SourceError(f"{name}:{wrong} is no sample of lm-eval: it lacks one of {', '.join(sorted(_SAMPLE))}")
    filters = {str(line.get("filter", "none")) for line in decoded}
    samples = decide([_sample(line, model, len(filters) > 1) for line in decoded])
    left_over: Counter[str] = Counter()
    for line in decoded:
        further = max(0, len(as_list(next(iter(as_list(line["resps"])), None))) - 1)
        if further and not _is_choice(line):
            left_over["further replies to a request"] += further
    return ToolResults(
        tool=f"lm-eval {results.get('lm_eval_version')}",
        task=task,
        evaluation=f"{results.get('date')} {model}",
        began=str(results.get("date") or ""),
        task_id=f"{results.get('date')} {task} {model}",
        dataset=task,
        samples=samples,
        headlines=_headlines(as_mapping(as_mapping(results.get("results")).get(task)), results, task, samples),
        left_over=left_over,
    )


def _sample(line: Mapping[str, Any], model: str, names_filter: bool) -> ToolSample:
    filtered = next(iter(as_list(line["filtered_resps"])), None)
    scorers = [str(each) for each in as_list(line.get("metrics"))] or [n for n in line if as_score(line[n]) is not None]
    messages = _messages(line)
    choice = _is_choice(line)
    return ToolSample(
        sample_id=str(line["doc_id"]),
        input="\n\n".join(str(each["content"]) for each in messages) if len(messages) > 1 else _text_of(messages, line),
        target={"target": line.get("target"), "doc": line["doc"]},
        model=model,
        messages=messages,
        reply=Reply(json.dumps(line["resps"], ensure_ascii=False) if choice else _first_text(line["resps"])),
        scores=[
            Scored(scorer, value := line.get(scorer), as_score(value), None, None if choice else as_text(filtered))
            for scorer in scorers
        ],
        prompt_variant=str(line.get("filter", "none")) if names_filter else "direct",
        metadata=as_mapping(line["doc"]),
    )


def _is_choice(line: Mapping[str, Any]) -> bool:
    """Tell whether likelihoods of given continuations were asked for, and no text."""
    return len(as_mapping(line.get("arguments"))) > 1 or isinstance(
        next(iter(as_list(line["filtered_resps"])), ""), list
    )


def _first_text(replies: Any) -> str | None:
    while isinstance(replies, list):
        replies = next(iter(replies), None)
    return as_text(replies)


def _messages(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read what was asked: the messages of a chat, or the whole prompt as the user's."""
    arguments = line.get("arguments")
    first = (
        next(iter(arguments.values()), None) if isinstance(arguments, dict) else next(iter(as_list(arguments)), None)
    )
    asked = as_mapping(first).get("arg_0") if isinstance(first, dict) else next(iter(as_list(first)), None)
    if isinstance(asked, list):
        asked = next(iter(asked), None)
    if not isinstance(asked, str):
        return []
    try:
        chat = json.loads(asked)
    except ValueError:
        chat = None
    if isinstance(chat, list) and chat and all(isinstance(each, dict) and "role" in each for each in chat):
        return [chat_message(each) for each in chat]
    return [{"role": "user", "content": asked}]


def _text_of(messages: Sequence[Mapping[str, Any]], line: Mapping[str, Any]) -> str:
    return str(messages[0]["content"]) if messages else json.dumps(line["doc"], ensure_ascii=False)


def _headlines(
    reported: Mapping[str, Any], results: Mapping[str, Any], task: str, samples: Sequence[ToolSample]
) -> list[Headline]:
    """Recompute means and their standard errors by metric and filter."""
    declared = as_list(as_mapping(as_mapping(results.get("configs")).get(task)).get("metric_list"))
    otherwise = {m.get("metric") for m in map(as_mapping, declared) if m.get("aggregation", "mean") != "mean"}
    headlines = []
    for name, value in reported.items():
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
