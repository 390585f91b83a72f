"""Read a log of OpenAI's evals (`oaieval`): a line with the run's spec, a line an event, and the final report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.core.errors import SourceError
from evalake.models.request import Reply
from evalake.sdk.tool_results import Headline, Scored, ToolResults, ToolSample, as_score, decide, mean
from evalake.suites.declared.formats.values import as_count, as_list, as_mapping, as_text, chat_message, read_json

_OTHER = frozenset({"sampling", "match", "metrics"})


def is_spec(line: Any) -> bool:
    """Tell whether a decoded line is the first of a log."""
    return isinstance(line, dict) and {"eval_name", "run_id", "completion_fns"} <= as_mapping(line.get("spec")).keys()


def read(lines: Sequence[str], name: str) -> ToolResults:
    """Read the lines of a log. Raises SourceError where one is no JSON, or there is no sample."""
    decoded = [as_mapping(read_json(line, f"{name}:{n}")) for n, line in enumerate(lines, start=1) if line.strip()]
    spec = as_mapping(decoded[0]["spec"])
    report = next((as_mapping(each["final_report"]) for each in decoded if "final_report" in each), {})
    model = str(next(iter(as_list(spec.get("completion_fns"))), "unnamed model"))
    events: dict[str, list[Mapping[str, Any]]] = {}
    left_over: Counter[str] = Counter()
    for each in decoded:
        if "sample_id" not in each:
            continue
        if each.get("type") in _OTHER:
            events.setdefault(str(each["sample_id"]), []).append(each)
        else:
            left_over[f"{each.get('type')} events"] += 1
    samples = decide([_sample(sample_id, own, model) for sample_id, own in events.items()])
    if not samples:
        raise SourceError(f"{name} holds no sample")
    task = str(spec.get("base_eval") or spec["eval_name"])
    headlines = []
    for metric, value in report.items():
        said = as_score(value)
        ours = mean([s.score for each in samples for s in each.scores if s.scorer == "match" and s.score is not None])
        if said is not None:
            headlines.append(Headline(f"{metric} of {model}", said, ours if metric == "accuracy" else None))
    run_id = str(spec["run_id"])
    began = as_text(spec.get("created_at")) or ""
    return ToolResults(
        "OpenAI evals", task, run_id, began, run_id, str(spec["eval_name"]), samples, headlines, left_over
    )


def _sample(sample_id: str, events: Sequence[Mapping[str, Any]], model: str) -> ToolSample:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for each in events:
        by_kind.setdefault(str(each["type"]), []).append(as_mapping(each.get("data")))
    asked = by_kind.get("sampling", [{}])[0]
    prompt, sampled = asked.get("prompt"), asked.get("sampled")
    messages = [chat_message(each) for each in map(as_mapping, as_list(prompt))]
    if isinstance(prompt, str):
        messages = [{"role": "user", "content": prompt}]
    text = as_text(sampled[0]) if isinstance(sampled, list) and sampled else as_text(sampled)
    usage = as_mapping(asked.get("usage"))
    scores, target = [], None
    for number, each in enumerate(by_kind.get("match", []), start=1):
        correct, target = each.get("correct"), each.get("expected")
        name = "match" if number == 1 else f"match_{number}"
        said = correct if isinstance(correct, bool) else None
        scores.append(Scored(name, correct, as_score(correct), said, as_text(each.get("picked"))))
        text = text if text is not None else as_text(each.get("sampled"))
    for each in by_kind.get("metrics", []):
        scores += [Scored(metric, value, as_score(value), None) for metric, value in each.items()]
    return ToolSample(
        sample_id=sample_id,
        input=str(messages[-1]["content"]) if messages else sample_id,
        target={"target": target},
        model=model,
        messages=messages,
        reply=Reply(
            text,
            input_tokens=as_count(usage.get("prompt_tokens")),
            output_tokens=as_count(usage.get("completion_tokens")),
        ),
        scores=scores or [Scored("match", None, None, None)],
    )
