"""Write results for other tools: logs of Inspect (`.json`, version 2), and the two files of Every Eval Ever, 0.3.0."""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

from evalake.models.request import Reply
from evalake.sdk.tool_results import Scored, ToolResults, ToolSample, by_sample, mean, standard_error
from evalake.suites.declared.formats.inspect_log import NUMBERS
from evalake.suites.declared.formats.values import as_list, as_mapping, as_text, at, objects

# Inspect: one log for each dataset, model and prompt.

_METRICS = [{"name": f"inspect_ai/{name}", "options": {}} for name in ("accuracy", "stderr")]
_STOPS = {"stop", "length", "tool_calls", "content_filter"}
_STOP_OF = {"length": "max_tokens"}


def inspect_log(results: ToolResults) -> dict[str, Any]:
    """Write a log; each scorer's headline is the mean over samples, whose epochs are averaged first."""
    first = results.samples[0]
    epochs = 1 + max(sample.repeat for sample in results.samples)
    ids = list(dict.fromkeys(sample.sample_id for sample in results.samples))
    scorers = list(dict.fromkeys(each.scorer for sample in results.samples for each in sample.scores))
    variant = {} if first.prompt_variant == "direct" else {"prompt": first.prompt_variant}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": results.evaluation,
            "run_id": results.task_id,
            "created": results.began,
            "task": results.task,
            "task_id": results.task_id,
            "task_version": 0,
            "task_args": variant,
            "task_args_passed": variant,
            "dataset": {"name": results.dataset, "samples": len(ids), "sample_ids": ids},
            "model": first.model,
            "config": {"epochs": epochs},
            "packages": {},
            "scorers": [{"name": scorer, "options": {}, "metrics": _METRICS, "metadata": {}} for scorer in scorers],
            "metadata": {"written_by": results.tool},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(results.samples),
            "completed_samples": sum(sample.error is None for sample in results.samples),
            "scores": [_headline(scorer, results.samples) for scorer in scorers],
        },
        "stats": {"started_at": results.began, "completed_at": results.began, "model_usage": {}},
        "samples": [_inspect_sample(sample) for sample in results.samples],
    }


def _headline(scorer: str, samples: Sequence[ToolSample]) -> dict[str, Any]:
    known = by_sample(samples, scorer)
    values = [sum(each) / len(each) for each in known.values()]
    name = "accuracy" if all(value in (0, 1) for each in known.values() for value in each) else "mean"
    metrics = {name: mean(values), "stderr": standard_error(values)}
    return {
        "name": scorer,
        "scorer": scorer,
        "scored_samples": len(values),
        "unscored_samples": len({sample.sample_id for sample in samples} - known.keys()),
        "params": {},
        "metrics": {
            name: {"name": name, "value": value, "params": {}} for name, value in metrics.items() if value is not None
        },
    }


def _inspect_sample(sample: ToolSample) -> dict[str, Any]:
    target, choices = _expected(sample)
    texts = [as_text(each) or "" for each in target] if isinstance(target, list) else as_text(target) or ""
    reply, usage = sample.reply, _usage(sample.reply)
    answer = {
        "role": "assistant",
        "content": reply.text or "",
        "source": "generate",
        **({"tool_calls": calls} if (calls := [_call(each) for each in json.loads(reply.tool_calls or "[]")]) else {}),
    }
    if reply.reasoning:
        answer["content"] = [
            {"type": "reasoning", "reasoning": reply.reasoning},
            {"type": "text", "text": reply.text or ""},
        ]
    came = reply.text is not None
    stop = _STOP_OF.get(reply.finish_reason or "", reply.finish_reason if reply.finish_reason in _STOPS else "unknown")
    return {
        "id": sample.sample_id,
        "epoch": sample.repeat + 1,
        "input": sample.input,
        **({"choices": choices} if choices else {}),
        "target": texts,
        "messages": [*map(_message, sample.messages), *([answer] if came else [])],
        "output": {
            "model": reply.model_reported or sample.model,
            "choices": [{"message": answer, "stop_reason": stop}] if came else [],
            "completion": reply.text or "",
            **({"usage": usage} if usage else {}),
            **({"time": reply.latency_ms / 1000} if reply.latency_ms is not None else {}),
        },
        "scores": {each.scorer: _score(each) for each in sample.scores if _value(each) is not None},
        "metadata": dict(sample.metadata),
        "store": {},
        "events": [],
        "model_usage": {sample.model: usage} if usage else {},
        "attachments": {},
        **({"error": {"message": sample.error, "traceback": "", "traceback_ansi": ""}} if sample.error else {}),
    }


def _expected(sample: ToolSample) -> tuple[Any, Any]:
    """Find what a sample expects, and the choices that it gives."""
    target = sample.target
    if isinstance(target, dict) and "target" in target:
        return target["target"], target.get("choices")
    return target, None


def _value(scored: Scored) -> Any:
    """Write a value as Inspect's scorers do: a letter where right or wrong is all that is known."""
    if scored.correct is not None and not isinstance(scored.value, bool | int | float):
        return scored.value if scored.value in ("C", "I") else "C" if scored.correct else "I"
    return scored.score if scored.value is None else scored.value


def _score(scored: Scored) -> dict[str, Any]:
    value = _value(scored)
    value = value if isinstance(value, bool | int | float | str | list | dict) else str(value)
    return {"value": value, "answer": scored.answer, "explanation": scored.explanation}


def _usage(reply: Reply) -> dict[str, Any]:
    """Write the tokens, those of the cache apart; nothing where either side is not known."""
    if reply.input_tokens is None or reply.output_tokens is None:
        return {}
    cached = reply.cached_input_tokens or 0
    usage = {theirs: getattr(reply, ours) for ours, theirs in NUMBERS.items()}
    usage |= {"input_tokens": reply.input_tokens - cached, "total_tokens": reply.input_tokens + reply.output_tokens}
    return {name: value for name, value in usage.items() if value is not None}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role = message.get("role")
    written: dict[str, Any] = {
        "role": role if role in ("system", "user", "assistant", "tool") else "user",
        "content": as_text(message, "content") or "",
    }
    if calls := objects(message, "tool_calls"):
        written["tool_calls"] = [_call(each) for each in calls]
    if role == "tool":
        written |= {"tool_call_id": message.get("tool_call_id"), "function": message.get("name")}
        if message.get("error"):
            written["error"] = {"type": "unknown", "message": as_text(message["error"])}
    return written


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    called, name, arguments = _called(call)
    arguments = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    return {"id": called, "function": name, "arguments": arguments, "type": "function"}


def _called(call: Mapping[str, Any]) -> tuple[str, str, Any]:
    """Read a call of a tool: its id, its name, and its arguments, decoded where they are JSON."""
    name, arguments = as_text(call, "function.name") or "", at(call, "function.arguments")
    try:
        decoded = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        decoded = {"arguments": arguments}
    return as_text(call, "id") or name, name, decoded


# Every Eval Ever: an aggregate, and an instance for each sample and scorer.

SCHEMA_VERSION = "0.3.0"
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}


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
    target, choices = _expected(sample)
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
    named = as_text(message, "tool_call_id")
    calls = [
        {"id": called, "name": name, "arguments": {key: as_text(of) or "null" for key, of in as_mapping(given).items()}}
        for called, name, given in map(_called, objects(message, "tool_calls"))
    ]
    return {
        "turn_idx": index,
        "role": str(message.get("role")),
        "content": as_text(message, "content"),
        "tool_calls": calls or None,
        "tool_call_id": None if named is None else [named],
    }
