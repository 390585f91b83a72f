"""Every Eval Ever: instances (`.jsonl`, one line a sample and metric) with an aggregate beside them, in and out.

The form is that of its schemas, 0.3.0; older instances are read, too.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

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
from evalake.suites.declared.formats.values import as_count, as_list, as_mapping, as_text, chat_message, read_json

SCHEMA_VERSION = "0.3.0"
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}
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


def read(lines: Sequence[str], aggregate: Mapping[str, Any] | None, name: str) -> list[ToolResults]:
    """Read the instances of a file, as one evaluation a name. Raises SourceError where a line is none."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        decoded = read_json(line, f"{name}:{number}")
        if not is_instance(decoded):
            raise SourceError(f"{name}:{number} is no instance of Every Eval Ever")
        by_name.setdefault(str(decoded["evaluation_name"]), []).append(decoded)
    library = as_mapping(as_mapping(aggregate).get("eval_library"))
    tool = f"Every Eval Ever ({library['name']})" if library.get("name") else "Every Eval Ever"
    began = as_text(as_mapping(aggregate).get("evaluation_timestamp")) or ""
    return [_results(task, instances, aggregate or {}, tool, began) for task, instances in by_name.items()]


def _results(
    task: str, instances: Sequence[Mapping[str, Any]], aggregate: Mapping[str, Any], tool: str, began: str
) -> ToolResults:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in instances:
        groups.setdefault((str(each["sample_id"]), str(each["model_id"])), []).append(each)
    samples = []
    for (sample_id, model), own in groups.items():
        repeats: dict[str, list[Mapping[str, Any]]] = {}
        for each in own:
            repeats.setdefault(_scorer(each), []).append(each)
        for repeat in range(max(map(len, repeats.values()))):
            parts = [each[repeat] for each in repeats.values() if repeat < len(each)]
            samples.append(_sample(sample_id, model, repeat, parts))
    left_over = Counter({"performance details": sum(bool(each.get("performance")) for each in instances)})
    decided = decide(samples)
    evaluation = str(instances[0].get("evaluation_id", task))
    headlines = list(_headlines(task, decided, aggregate))
    return ToolResults(tool, task, evaluation, began, evaluation, task, decided, headlines, +left_over)


def _scorer(instance: Mapping[str, Any]) -> str:
    named = as_text(instance.get("evaluation_result_id"))
    attributed = as_mapping(next(iter(as_list(instance.get("answer_attribution"))), None))
    return named or as_text(attributed.get("extraction_method")) or "score"


def _sample(sample_id: str, model: str, repeat: int, parts: Sequence[Mapping[str, Any]]) -> ToolSample:
    first = parts[0]
    given, usage = as_mapping(first.get("input")), as_mapping(first.get("token_usage"))
    messages = [chat_message(as_mapping(each)) for each in as_list(first.get("messages"))]
    output = as_mapping(first.get("output"))
    texts = [each for each in as_list(output.get("raw")) if isinstance(each, str)]
    text = texts[-1] if texts else None
    if messages and messages[-1]["role"] == "assistant":
        text = messages.pop()["content"]
    elif not messages:
        messages = [{"role": "user", "content": as_text(given.get("formatted") or given.get("raw")) or ""}]
    target: dict[str, Any] = {"target": as_list(given.get("reference"))}
    if given.get("choices"):
        target["choices"] = given["choices"]
    sent, cached = as_count(usage.get("input_tokens")), as_count(usage.get("input_tokens_cache_read"))
    return ToolSample(
        sample_id=sample_id,
        input=as_text(given.get("raw")) or "",
        target=target,
        model=model,
        messages=messages,
        reply=Reply(
            text=text,
            input_tokens=sent,
            cached_input_tokens=cached if cached is None or sent is None else min(cached, sent),
            output_tokens=as_count(usage.get("output_tokens")),
            reasoning_tokens=as_count(usage.get("reasoning_tokens")),
            latency_ms=as_score(as_mapping(first.get("performance")).get("latency_ms")),
            reasoning="\n".join(map(str, as_list(output.get("reasoning_trace")))) or None,
        ),
        scores=[_scored(each) for each in parts],
        repeat=repeat,
        metadata=as_mapping(first.get("metadata")),
        error=as_text(first.get("error")),
    )


def _scored(instance: Mapping[str, Any]) -> Scored:
    evaluation = as_mapping(instance.get("evaluation"))
    attributed = [as_mapping(each) for each in as_list(instance.get("answer_attribution"))]
    answer = next(
        (as_text(each.get("extracted_value")) for each in reversed(attributed) if each.get("is_terminal")), None
    )
    correct = evaluation.get("is_correct")
    score = as_score(evaluation.get("score"))
    return Scored(
        _scorer(instance), evaluation.get("score"), score, correct if isinstance(correct, bool) else None, answer
    )


def _headlines(task: str, samples: Sequence[ToolSample], aggregate: Mapping[str, Any]) -> Iterator[Headline]:
    """Recompute the means that an aggregate says; None where its results are not told apart."""
    told = [as_mapping(each) for each in as_list(aggregate.get("evaluation_results"))]
    mine = [each for each in told if each.get("evaluation_name") == task]
    for each in mine:
        said = as_score(as_mapping(each.get("score_details")).get("score"))
        scorer = as_text(each.get("evaluation_result_id"))
        values = [
            scored.score
            for sample in samples
            for scored in sample.scores
            if scored.score is not None and (scored.scorer == scorer or len(mine) == 1)
        ]
        kind = as_text(as_mapping(each.get("metric_config")).get("metric_kind"))
        known = kind in (None, "accuracy", "mean", "exact_match")
        if said is not None:
            yield Headline(f"{scorer or kind or 'score'} of {task}", said, mean(values) if known else None)


# Out.


def place_of(results: ToolResults) -> str:
    """Name the place of a model's files, as the datastore has it: `data/TASK/DEVELOPER/MODEL/UUID`."""
    sample = results.samples[0]
    developer, _, name = sample.model.rpartition("/")
    parts = [re.sub(r"[^\w.-]+", "_", part) or "unknown" for part in (results.task, developer, name)]
    about = [results.evaluation, results.dataset, sample.model, sample.prompt_variant]
    digest = sha256(json.dumps(about).encode()).digest()
    return "/".join(["data", *parts, str(UUID(bytes=digest[:16], version=4))])


def documents(results: ToolResults, retrieved: str) -> tuple[dict[str, Any], list[dict[str, Any]], int]:
    """Write the aggregate and the instances of one model; returns them, and how many scores have no place.

    `retrieved` is the time as Unix seconds.
    """
    model = results.samples[0].model
    about = {"prompt": results.samples[0].prompt_variant}
    evaluation = f"{results.task}/{model}/{retrieved}"
    instances = []
    left_out = 0
    for sample in results.samples:
        for scored in sample.scores:
            if scored.score is None or scored.correct is None:
                left_out += 1
            else:
                instances.append(_instance(results, evaluation, sample, scored))
    lines = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in instances)
    scorers = list(dict.fromkeys(each.scorer for sample in results.samples for each in sample.scores))
    aggregate = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "evaluation_timestamp": results.began,
        "retrieved_timestamp": retrieved,
        "source_metadata": {
            "source_name": "evalake",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "evalake", "version": "unknown"},
        "model_info": {"name": model, "id": model, "additional_details": {**_UNKNOWN, **about}},
        "evaluation_results": [each for scorer in scorers if (each := _metric(results, scorer)) is not None],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{place_of(results)}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": sha256(lines.encode()).hexdigest(),
            "total_rows": len(instances),
        },
    }
    return aggregate, instances, left_out


def _metric(results: ToolResults, scorer: str) -> dict[str, Any] | None:
    own = [each for sample in results.samples for each in sample.scores if each.scorer == scorer]
    values = [each.score for each in own if each.score is not None]
    average, error = mean(values), standard_error(values)
    if average is None:
        return None
    uncertainty: dict[str, Any] = {"num_samples": len(values)}
    if error is not None:
        uncertainty["standard_error"] = {"value": error, "method": "analytic"}
    return {
        "evaluation_result_id": scorer,
        "evaluation_name": results.task,
        "source_data": {"dataset_name": results.dataset, "source_type": "other"},
        "metric_config": {
            "metric_id": scorer,
            "metric_kind": "accuracy" if set(values) <= {0.0, 1.0} else "mean",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": min(0.0, *values),
            "max_score": max(1.0, *values),
        },
        "score_details": {"score": average, "uncertainty": uncertainty},
    }


def _instance(results: ToolResults, evaluation: str, sample: ToolSample, scored: Scored) -> dict[str, Any]:
    target = sample.target
    choices = target.get("choices") if isinstance(target, dict) else None
    target = target["target"] if isinstance(target, dict) and "target" in target else target
    several = target if isinstance(target, list) else [] if target is None else [target]
    texts = [as_text(each) or "" for each in several]
    answer = {"role": "assistant", "content": sample.reply.text}
    turns = [*sample.messages, *([answer] if sample.reply.text is not None else [])]
    tools = sum(len(as_list(each.get("tool_calls"))) for each in turns)
    is_single = not tools and sum(each.get("role") == "user" for each in turns) <= 1
    last = 0 if is_single else len(turns) - 1
    reply = sample.reply
    written: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "model_id": sample.model,
        "evaluation_name": results.task,
        "evaluation_result_id": scored.scorer,
        "sample_id": sample.sample_id,
        "sample_hash": sha256("".join([sample.input, *texts]).encode()).hexdigest(),
        "interaction_type": "single_turn" if is_single else "agentic" if tools else "multi_turn",
        "input": {"raw": sample.input, "reference": texts, **({"choices": choices} if choices else {})},
        "output": {"raw": [reply.text or ""]} if is_single else None,
        "messages": None if is_single else [_turn(index, each) for index, each in enumerate(turns)],
        "answer_attribution": [
            {
                "turn_idx": last,
                "source": "output.raw" if is_single else f"messages[{last}].content",
                "extracted_value": scored.answer if scored.answer is not None else reply.text or "",
                "extraction_method": scored.scorer,
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": scored.score, "is_correct": scored.correct, "num_turns": max(1, len(turns))},
        "error": sample.error,
        "metadata": {name: as_text(each) or "" for name, each in sample.metadata.items()},
    }
    if tools:
        written["evaluation"]["tool_calls_count"] = tools
    if reply.input_tokens is not None and reply.output_tokens is not None:
        written["token_usage"] = {
            "input_tokens": reply.input_tokens,
            "output_tokens": reply.output_tokens,
            "total_tokens": reply.input_tokens + reply.output_tokens,
            "input_tokens_cache_read": reply.cached_input_tokens,
            "reasoning_tokens": reply.reasoning_tokens,
        }
    if reply.latency_ms is not None:
        written["performance"] = {"latency_ms": reply.latency_ms}
    return written


def _turn(index: int, message: Mapping[str, Any]) -> dict[str, Any]:
    calls = [as_mapping(each) for each in as_list(message.get("tool_calls"))]
    named = as_text(message.get("tool_call_id"))
    return {
        "turn_idx": index,
        "role": str(message.get("role")),
        "content": as_text(message.get("content")),
        "tool_calls": [_tool_call(each) for each in calls] or None,
        "tool_call_id": None if named is None else [named],
    }


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = as_mapping(call.get("function"))
    name = as_text(function.get("name")) or ""
    try:
        decoded = json.loads(as_text(function.get("arguments")) or "{}")
    except ValueError:
        decoded = {"arguments": function.get("arguments")}
    arguments = {key: as_text(value) or "null" for key, value in as_mapping(decoded).items()}
    return {"id": as_text(call.get("id")) or name, "name": name, "arguments": arguments}
