"""Results whose records are answers: a table with columns named by a mapping, MLflow's table, Langfuse's traces."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.models.request import Reply
from evalake.sdk.sample import Record
from evalake.sdk.sources import find_table, read_mapping, read_table
from evalake.sdk.tool_results import Scored, ToolResults, ToolSample, as_score, decide
from evalake.suites.declared.formats.values import as_count, as_list, as_mapping, as_text

FIELDS = (
    *("sample_id", "input", "target", "model", "reply", "score", "correct", "scorer", "answer", "explanation"),
    *("repeat", "prompt", "input_tokens", "output_tokens", "cost_usd", "latency_ms", "error"),
)
"""What a column of a table of results can hold."""

_OF_MLFLOW = ("/score", "/justification")
_UNNAMED = "unnamed model"


def is_table(source: str) -> bool:
    """Tell whether a source is a table of results: its columns, or its mapping, name a reply and what it is worth."""
    try:
        path, mapping = find_table(source)
        first = next((each for each in read_table(path, ()) if isinstance(each, Record)), None)
        columns = read_mapping(mapping, FIELDS).columns
    except SourceError:
        return False
    there = {field for field, column in columns.items() if first is not None and column in first.values}
    return {"input", "reply"} <= there and bool(there & {"score", "correct"})


def read_rows(source: str) -> ToolResults:
    """Read a table of results: a record an answer and scorer. Raises SourceError where a mapped column is not there."""
    path, mapping = find_table(source)
    columns = read_mapping(mapping, FIELDS)
    left_over: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    for record in read_table(path, columns.needed(("input", "reply"))):
        if not isinstance(record, Record):
            left_over[record.reason] += 1
            continue
        own = set(columns.columns.values())
        fields = {field: columns.field(record, field) for field in FIELDS}
        rows.append({**fields, "metadata": {k: v for k, v in record.values.items() if k not in own and v is not None}})
    return _results("a table", path.stem, rows, content_hash([path.name, rows]), left_over)


def _results(
    tool: str, task: str, rows: Sequence[Mapping[str, Any]], evaluation: str, left_over: Counter[str]
) -> ToolResults:
    """Put rows of one answer together, one for each scorer."""
    answers: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        about = [as_text(row.get(name)) for name in ("input", "model", "prompt", "repeat", "reply")]
        answers.setdefault((as_text(row.get("sample_id")), *about), []).append(row)
    repeats: Counter[tuple[Any, ...]] = Counter()
    samples = []
    for own in answers.values():
        first = own[0]
        sample_id = as_text(first.get("sample_id")) or content_hash([first.get("input")])[:16]
        whose = (sample_id, as_text(first.get("model")) or _UNNAMED, as_text(first.get("prompt")) or "direct")
        samples.append(_sample(first, whose, repeats[whose], list(_scores(own))))
        repeats[whose] += 1
    if not samples:
        raise SourceError(f"{task} holds no result")
    return ToolResults(tool, task, evaluation, "", evaluation, task, decide(samples), (), left_over)


def _sample(row: Mapping[str, Any], whose: tuple[str, str, str], repeat: int, scores: Sequence[Scored]) -> ToolSample:
    text = as_text(row.get("input")) or ""
    return ToolSample(
        sample_id=whose[0],
        input=text,
        target={"target": row.get("target")},
        model=whose[1],
        messages=[{"role": "user", "content": text}],
        reply=Reply(
            text=as_text(row.get("reply")),
            input_tokens=_count(row.get("input_tokens")),
            output_tokens=_count(row.get("output_tokens")),
            cost_usd=as_score(row.get("cost_usd")),
            latency_ms=as_score(row.get("latency_ms")),
        ),
        scores=scores,
        repeat=repeat,
        prompt_variant=whose[2],
        metadata=as_mapping(row.get("metadata")),
        error=as_text(row.get("error")) or None,
    )


def _count(value: Any) -> int | None:
    number = as_score(value)
    return None if number is None else as_count(number)


def _scores(rows: Sequence[Mapping[str, Any]]) -> Iterator[Scored]:
    names: Counter[str] = Counter()
    for row in rows:
        name = as_text(row.get("scorer")) or "score"
        names[name] += 1
        numbered = name if names[name] == 1 else f"{name}_{names[name]}"
        right = as_score(row.get("correct"))
        value = row.get("score") if row.get("score") is not None else row.get("correct")
        correct = None if right not in (0.0, 1.0) else right == 1.0
        explanation, answer = as_text(row.get("explanation")), as_text(row.get("answer"))
        yield Scored(numbered, value, as_score(value), correct, answer, explanation)


# MLflow: `eval_results_table.json`, columns and rows apart.


def is_mlflow(document: Any) -> bool:
    """Tell whether a decoded document is the table of results that MLflow's evaluation logs."""
    columns = as_list(as_mapping(document).get("columns"))
    scored = any(isinstance(name, str) and name.endswith("/score") for name in columns)
    return scored and isinstance(document.get("data"), list)


def read_mlflow(document: Mapping[str, Any], name: str) -> ToolResults:
    """Read MLflow's table; each of its metrics is a scorer."""
    columns = [str(each) for each in document["columns"]]
    rows: list[dict[str, Any]] = []
    scorers = [column.removesuffix("/score") for column in columns if column.endswith("/score")]
    for cells in map(as_list, document["data"]):
        row = dict(zip(columns, cells, strict=False))
        known = _MLFLOW.keys() | {f"{scorer}{end}" for scorer in scorers for end in _OF_MLFLOW}
        about = {_MLFLOW[column]: value for column, value in row.items() if column in _MLFLOW and value is not None}
        latency = as_score(about.pop("latency", None))
        about |= {"metadata": {k: v for k, v in row.items() if k not in known and v is not None}}
        about |= {} if latency is None else {"latency_ms": latency * 1000}
        for scorer in scorers:
            said = {"scorer": scorer, "score": row.get(f"{scorer}/score")}
            rows.append({**about, **said, "explanation": row.get(f"{scorer}/justification")})
    task = name.partition(".")[0]
    return _results("MLflow", task, rows, content_hash([name, rows]), Counter())


_MLFLOW: Mapping[str, str] = {
    **{"inputs": "input", "question": "input", "outputs": "reply", "prediction": "reply", "predictions": "reply"},
    **{
        "targets": "target",
        "ground_truth": "target",
        "target": "target",
        "latency": "latency",
        "request_id": "sample_id",
    },
}


# Langfuse: traces with the scores given to them.


def is_langfuse(document: Any) -> bool:
    """Tell whether a decoded document is traces of Langfuse that have scores."""
    traces = as_list(document.get("data")) if isinstance(document, dict) else as_list(document)
    return bool(traces) and all(
        isinstance(each, dict) and "output" in each and isinstance(each.get("scores"), list) for each in traces
    )


def read_langfuse(document: Any, name: str) -> list[ToolResults]:
    """Read traces, as one task for each name of a trace; what has no score is unscored."""
    by_task: dict[str, list[dict[str, Any]]] = {}
    left_over: Counter[str] = Counter()
    for trace in map(as_mapping, as_list(document.get("data") if isinstance(document, dict) else document)):
        rows = by_task.setdefault(as_text(trace.get("name")) or name.partition(".")[0], [])
        generations = [each for each in map(as_mapping, as_list(trace.get("observations"))) if each.get("model")]
        metadata = as_mapping(trace.get("metadata"))
        about = {
            "sample_id": as_text(metadata.get("item_id") or trace.get("id")),
            "input": _plain(trace.get("input")),
            "reply": _plain(trace.get("output")),
            "target": metadata.get("expected_output"),
            "model": generations[-1]["model"] if generations else None,
            "cost_usd": trace.get("totalCost") or None,
            "latency_ms": None if (seconds := as_score(trace.get("latency"))) is None else seconds * 1000,
            "metadata": metadata,
        }
        scores = [each for each in map(as_mapping, trace["scores"]) if each.get("name")]
        left_over["traces without a score"] += not scores
        for each in scores or [{}]:
            value = each.get("stringValue") if each.get("value") is None else each["value"]
            is_verdict = each.get("dataType") == "BOOLEAN"
            said = {"scorer": each.get("name"), "score": value, "correct": value if is_verdict else None}
            rows.append({**about, **said, "explanation": each.get("comment")})
    return [_results("Langfuse", task, rows, content_hash([task, rows]), +left_over) for task, rows in by_task.items()]


def _plain(value: Any) -> str | None:
    """Write the last message of a conversation, or its text; anything else as JSON."""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, list) and value and isinstance(value[-1], dict) and "content" in value[-1]:
        value = value[-1]
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        return str(value["content"])
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
