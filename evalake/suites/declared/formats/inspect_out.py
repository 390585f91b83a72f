"""Write results as a log of Inspect (`.json`, version 2), one for each dataset, model and prompt."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.models.request import Reply
from evalake.sdk.tool_results import Scored, ToolResults, ToolSample, mean, standard_error
from evalake.suites.declared.formats.values import as_list, as_mapping, as_text

_METRICS = [{"name": f"inspect_ai/{name}", "options": {}} for name in ("accuracy", "stderr")]
_STOPS = {"stop", "length", "tool_calls", "content_filter"}
_STOP_OF = {"length": "max_tokens"}


def document(results: ToolResults) -> dict[str, Any]:
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
        "samples": [_sample(sample) for sample in results.samples],
    }


def _headline(scorer: str, samples: Sequence[ToolSample]) -> dict[str, Any]:
    by_sample: dict[str, list[float]] = {}
    for sample in samples:
        for each in sample.scores:
            if each.scorer == scorer and each.score is not None:
                by_sample.setdefault(sample.sample_id, []).append(each.score)
    values = [sum(each) / len(each) for each in by_sample.values()]
    name = "accuracy" if all(value in (0, 1) for each in by_sample.values() for value in each) else "mean"
    metrics = {name: mean(values), "stderr": standard_error(values)}
    return {
        "name": scorer,
        "scorer": scorer,
        "scored_samples": len(values),
        "unscored_samples": len({sample.sample_id for sample in samples} - by_sample.keys()),
        "params": {},
        "metrics": {
            name: {"name": name, "value": value, "params": {}} for name, value in metrics.items() if value is not None
        },
    }


def _sample(sample: ToolSample) -> dict[str, Any]:
    target, choices = sample.target, None
    if isinstance(target, dict) and "target" in target:
        target, choices = target["target"], target.get("choices")
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
        **({"error": _error(sample.error)} if sample.error else {}),
    }


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
    usage = {
        "input_tokens": reply.input_tokens - cached,
        "output_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "input_tokens_cache_read": reply.cached_input_tokens,
        "reasoning_tokens": reply.reasoning_tokens,
        "total_cost": reply.cost_usd,
    }
    return {name: value for name, value in usage.items() if value is not None}


def _error(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role = message.get("role")
    written: dict[str, Any] = {
        "role": role if role in ("system", "user", "assistant", "tool") else "user",
        "content": as_text(message.get("content")) or "",
    }
    if calls := as_list(message.get("tool_calls")):
        written["tool_calls"] = [_call(as_mapping(each)) for each in calls]
    if role == "tool":
        written |= {"tool_call_id": message.get("tool_call_id"), "function": message.get("name")}
        if message.get("error"):
            written["error"] = {"type": "unknown", "message": as_text(message["error"])}
    return written


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = as_mapping(call.get("function"))
    arguments = function.get("arguments")
    try:
        decoded = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        decoded = {"arguments": arguments}
    arguments = decoded if isinstance(decoded, dict) else {"arguments": decoded}
    name = as_text(function.get("name")) or ""
    return {"id": as_text(call.get("id")) or name, "function": name, "arguments": arguments, "type": "function"}
