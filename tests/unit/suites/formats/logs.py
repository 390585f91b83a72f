"""Small results in the form in which other tools write them."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from backports.zstd import zipfile

DEFLATED, ZSTANDARD = zipfile.ZIP_DEFLATED, zipfile.ZIP_ZSTANDARD


def header(task: str = "sums", **fields: Any) -> dict[str, Any]:
    """The header of a log of Inspect."""
    evaluation = {
        "eval_id": "e1",
        "created": "2026-01-01T00:00:00+00:00",
        "task": task,
        "task_id": "t1",
        "dataset": {"name": "numbers"},
        "model": "openai/small",
        "model_base_url": "http://127.0.0.1:9/v1",
        "config": {},
        "packages": {"inspect_ai": "0.3.285"},
        "scorers": [{"name": "match"}],
        **fields,
    }
    return {"version": 2, "status": "success", "eval": evaluation, "results": {"scores": []}}


def sample(sample_id: int | str, value: Any = "C", reply: str = "5", **fields: Any) -> dict[str, Any]:
    """A sample of a log of Inspect, with one turn."""
    asked = {"role": "user", "content": f"Question {sample_id}"}
    message = {"role": "assistant", "content": reply, "source": "generate"}
    output = {
        "model": "small",
        "choices": [{"message": message, "stop_reason": "stop"}],
        "completion": reply,
        "usage": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
        "time": 0.5,
    }
    turn = {
        "event": "model",
        "model": "openai/small",
        "input": [],
        "input_refs": [[0, 1]],
        "output": output,
        "call": {"request": {"model": "small", "tools": None}, "response": {}, "call_refs": [[0, 1]]},
    }
    return {
        "id": sample_id,
        "epoch": 1,
        "input": f"Question {sample_id}",
        "target": "5",
        "messages": [asked, message],
        "output": output,
        "scores": {"match": {"value": value, "answer": reply, "explanation": f"it says {reply}"}},
        "metadata": {"category": "easy"},
        "events": [turn],
        "events_data": {"messages": [asked], "calls": [asked]},
        "attachments": {},
        **fields,
    }


def archive(
    top: Mapping[str, Any] | None, samples: Sequence[Mapping[str, Any]], method: int = DEFLATED, **members: str
) -> bytes:
    """A `.eval` file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as written:
        for each in samples:
            written.writestr(f"samples/{each['id']}_epoch_{each['epoch']}.json", json.dumps(each))
        for name, content in members.items():
            written.writestr(name.replace("__", "/"), content)
        if top is not None:
            written.writestr("header.json", json.dumps(top))
    return buffer.getvalue()


def lm_eval_line(doc: int, metric: Any, **fields: Any) -> str:
    """A line of a samples file of lm-eval."""
    chat = json.dumps([{"role": "user", "content": f"Question {doc}"}])
    line = {
        "doc_id": doc,
        "doc": {"question": doc},
        "target": "5",
        "arguments": {"gen_args_0": {"arg_0": [chat], "arg_1": {"until": ["\n"]}}},
        "resps": [["5"]],
        "filtered_resps": ["5"],
        "filter": "none",
        "metrics": ["exact_match"],
        "exact_match": metric,
    }
    return json.dumps({**line, **fields})


def lm_eval_results(task: str = "sums", **reported: float) -> dict[str, Any]:
    """A results file of lm-eval."""
    figures = {name.replace("__", ","): value for name, value in reported.items()}
    return {
        "results": {task: {"alias": task, **figures}},
        "configs": {task: {"metric_list": [{"metric": "exact_match", "aggregation": "mean"}]}},
        "versions": {task: 1},
        "lm_eval_version": "0.4.13",
        "model_name": "small",
        "date": 1.0,
    }


def promptfoo_row(test: int, prompt: int, success: bool, provider: str = "openai:chat:small") -> dict[str, Any]:
    """A result of promptfoo."""
    part = {"pass": success, "score": float(success), "reason": "why", "assertion": {"type": "contains", "value": "5"}}
    return {
        "testIdx": test,
        "promptIdx": prompt,
        "success": success,
        "score": float(success),
        "failureReason": int(not success),
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": f"What is test {test}, prompt {prompt}?", "label": f"Template {prompt} of {{{{x}}}}"},
        "response": {"output": "5", "tokenUsage": {"prompt": 20, "completion": 5}},
        "cost": 0,
        "latencyMs": 26,
        "gradingResult": {"pass": success, "reason": "why", "componentResults": [part]},
        "namedScores": {},
        "testCase": {"vars": {"x": test}, "assert": [{"type": "contains", "value": "5"}]},
        "vars": {"x": test},
    }


def promptfoo_results(rows: Sequence[Mapping[str, Any]], **stats: int) -> dict[str, Any]:
    """A results file of promptfoo."""
    return {
        "evalId": "eval-1",
        "results": {"version": 3, "timestamp": "t", "results": list(rows), "stats": stats, "prompts": []},
        "config": {"description": "Sums of mine"},
        "metadata": {"promptfooVersion": "0.121.20"},
    }
