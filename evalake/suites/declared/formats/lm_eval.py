"""Read results of lm-evaluation-harness: `samples_TASK_*.jsonl` with the `results_*.json` of the same evaluation."""

import json
import re
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
from evalake.suites.declared.formats.values import as_list, as_mapping, as_text, conversation, count_further, read_json

_SAMPLE = {"doc_id", "doc", "resps", "filtered_resps"}
_FIELDS = _SAMPLE | {"arguments", "doc_hash", "filter", "metrics", "prompt_hash", "target", "target_hash"}
_NO_METRICS = _SAMPLE | {"target", "arguments", "filter"}  # of a line that does not list its metrics


def is_sample(line: Any) -> bool:
    """Tell whether a decoded line is a sample of lm-eval."""
    return isinstance(line, dict) and line.keys() >= _SAMPLE


def is_results(document: Any) -> bool:
    """Tell whether a decoded JSON document is a results file of lm-eval; those before 0.4.3 name no version."""
    return isinstance(document, dict) and document.keys() >= {"results", "configs", "versions"}


def task_of(stem: str, results: Mapping[str, Any]) -> str | None:
    """Find the task of a samples file by its name: the longest task of the results that the name holds."""
    tasks = [task for task in as_mapping(results.get("configs")) if task in stem]
    return max(tasks, key=len, default=None)


def _decoded(lines: Sequence[str], name: str) -> list[Any]:
    """Decode a samples file: a sample a line, or, before 0.4.3, one list of all."""
    if lines[0].startswith("["):
        return as_list(read_json("\n".join(lines), name))
    return [read_json(line, f"{name}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]


def read(lines: Sequence[str], results: Mapping[str, Any], task: str, name: str) -> ToolResults:
    """Read the lines of a samples file. Raises SourceError where one is no sample of lm-eval."""
    decoded = _decoded(lines, name)
    model = as_text(results.get("model_name")) or _model(as_mapping(results.get("config")))
    model = model or as_text(results.get("model_source"))
    if not model:
        raise SourceError(f"{name}: its results file names no model")
    if wrong := next((number for number, line in enumerate(decoded, start=1) if not is_sample(line)), None):
        raise SourceError(f"{name}:{wrong} is no sample of lm-eval: it lacks one of {', '.join(sorted(_SAMPLE))}")
    filters = {str(line.get("filter", "none")) for line in decoded}
    samples = decide([_sample(line, model, len(filters) > 1) for line in decoded])
    left_over: Counter[str] = Counter()
    for line in decoded:
        count_further(line, {*_FIELDS, *as_list(line.get("metrics", [*line]))}, left_over)
        further = max(0, len(as_list(next(iter(as_list(line["resps"])), None))) - 1)
        if further and not _is_choice(line):
            left_over["further replies to a request"] += further
    return ToolResults(
        tool=f"lm-eval {results.get('lm_eval_version') or ''}".strip(),
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
    listed = line.get("metrics", [n for n, v in line.items() if n not in _NO_METRICS and isinstance(v, int | float)])
    scorers = [str(each) for each in as_list(listed)]
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


def _model(config: Mapping[str, Any]) -> str | None:
    """Find the model in the arguments of the command, which older results have in place of its name."""
    given = config.get("model_args")
    named = given if isinstance(given, dict) else dict(re.findall(r"(\w+)=([^,]*)", as_text(given) or ""))
    return as_text(named.get("pretrained") or named.get("model") or config.get("model"))


def _arguments(line: Mapping[str, Any]) -> list[Any]:
    """List the arguments of the first request: what was asked, then a continuation or how to generate."""
    several = line.get("arguments")
    first = next(iter(several.values() if isinstance(several, dict) else as_list(several)), None)
    return list(first.values()) if isinstance(first, dict) else as_list(first)


def _is_choice(line: Mapping[str, Any]) -> bool:
    """Tell whether likelihoods of given continuations were asked for, and no text."""
    return not isinstance(next(iter(_arguments(line)[1:]), None), dict)


def _first_text(replies: Any) -> str | None:
    while isinstance(replies, list):
        replies = next(iter(replies), None)
    return as_text(replies)


def _messages(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read what was asked: the messages of a chat, or the whole prompt as the user's."""
    asked = next(iter(_arguments(line)), None)
    if isinstance(asked, list):
        asked = next(iter(asked), None)
    return conversation(asked) if isinstance(asked, str) else []


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
