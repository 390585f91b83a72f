"""Results whose records are answers: tables with columns named by a mapping, MLflow, Langfuse, OpenAI's evals."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.hashing import content_hash
from evalake.sdk.sample import Record, Skipped
from evalake.sdk.sources import find_table, read_mapping, read_table
from evalake.sdk.tool_results import Headline, Scored, ToolResults, ToolSample, as_score, by_sample, decide, mean
from evalake.suites.declared.formats import values
from evalake.suites.declared.formats.values import as_list, as_mapping, as_text, objects

FIELDS = (
    *("sample_id", "input", "target", "model", "reply", "score", "correct", "scorer", "answer", "explanation"),
    *("repeat", "prompt", "input_tokens", "output_tokens", "cost_usd", "latency_ms", "error"),
)
"""What a column of a table of results can hold."""

Row = Mapping[str, Any]
"""What one scorer said of one answer: FIELDS, and `metadata` and `messages` of the sample."""

_NUMBERS = {name: name for name in ("input_tokens", "output_tokens", "cost_usd", "latency_ms")}


def is_table(source: str) -> bool:
    """Tell whether a source is a table of results: its columns, or its mapping, name a reply and what it is worth."""
    try:
        columns, mapped = columns_of(source), read_mapping(find_table(source)[1], FIELDS).columns
    except SourceError:
        return False
    there = {field for field, column in mapped.items() if column in columns}
    return {"input", "reply"} <= there and bool(there & {"score", "correct"})


def columns_of(source: str) -> list[str]:
    """List the columns of a table's first record. Raises SourceError where it cannot be read."""
    path, _ = find_table(source)
    return next((list(each.values) for each in read_table(path, ()) if isinstance(each, Record)), [])


def read_rows(source: str) -> ToolResults:
    """Read a table of results: a record an answer and scorer. Raises SourceError where a mapped column is not there."""
    path, mapping = find_table(source)
    columns = read_mapping(mapping, FIELDS)
    rows: list[Row] = []
    refused: list[Skipped] = []
    for record in read_table(path, columns.needed(("input", "reply"))):
        if isinstance(record, Record):
            own = {field: columns.field(record, field) for field in FIELDS}
            rows.append({**own, "metadata": _further(record.values, columns.columns.values())})
        else:
            refused.append(record)
    return replace(_results("a table", path.stem, rows, content_hash([path.name, rows]), {}), refused=refused)


def _further(values: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in known and value is not None}


def _results(
    tool: str, task: str, rows: Sequence[Row], evaluation: str, left_over: Mapping[str, int], dataset: str | None = None
) -> ToolResults:
    """Put rows of one answer together, one for each scorer."""
    answers: dict[tuple[Any, ...], list[Row]] = {}
    times: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        about = (as_text(row.get(name)) for name in ("sample_id", "input", "model", "prompt", "repeat", "reply"))
        scored = (*about, as_text(row, "scorer"))
        answers.setdefault((*scored[:-1], times[scored]), []).append(row)  # the same scorer again: a repeat
        times[scored] += 1
    repeats: Counter[tuple[Any, ...]] = Counter()
    samples = []
    for own in answers.values():
        first = own[0]
        sample_id = as_text(first, "sample_id") or content_hash([first.get("input")])[:16]
        whose = (sample_id, as_text(first, "model") or "unnamed model", as_text(first, "prompt") or "direct")
        samples.append(_sample(own, whose, repeats[whose]))
        repeats[whose] += 1
    if not samples:
        raise SourceError(f"{task} holds no result")
    return ToolResults(tool, task, evaluation, "", evaluation, dataset or task, decide(samples), (), left_over)


def _sample(rows: Sequence[Row], whose: tuple[str, str, str], repeat: int) -> ToolSample:
    row, text = rows[0], as_text(rows[0], "input") or ""
    errors = [as_text(each, "error") or None for each in rows]
    return ToolSample(
        sample_id=whose[0],
        input=text,
        target={"target": row.get("target")},
        model=whose[1],
        messages=row.get("messages", [{"role": "user", "content": text}]),
        reply=values.as_reply(as_text(row, "reply"), row, _NUMBERS),
        scores=list(_scores(rows)),
        repeat=repeat,
        prompt_variant=whose[2],
        metadata=as_mapping(row, "metadata"),
        error=errors[0] if all(errors) else None,  # of some scorers, it is theirs
    )


def _scores(rows: Sequence[Row]) -> Iterator[Scored]:
    names: Counter[str] = Counter()
    for row in rows:
        right = as_score(row.get("correct"))
        value = row.get("score") if row.get("score") is not None else row.get("correct")
        correct = None if right not in (0.0, 1.0) else right == 1.0
        scorer = values.numbered(as_text(row, "scorer") or "score", names)
        said = (as_text(row, name) for name in ("answer", "explanation", "error"))
        yield Scored(scorer, value, as_score(value), correct, *said)


def _milliseconds(seconds: Any) -> float | None:
    known = as_score(seconds)
    return None if known is None else known * 1000


# MLflow: `eval_results_table.json`, columns and rows apart.

_MLFLOW = values.TOOLS["mlflow"]["columns"]


def is_mlflow(document: Any) -> bool:
    """Tell whether a decoded document is the table of results that MLflow's evaluation logs."""
    scored = any(isinstance(name, str) and name.endswith("/score") for name in as_list(document, "columns"))
    return scored and isinstance(document.get("data"), list)


def read_mlflow(document: Mapping[str, Any], name: str) -> ToolResults:
    """Read MLflow's table; each of its metrics is a scorer."""
    columns = [str(each) for each in document["columns"]]
    scorers = [column.removesuffix("/score") for column in columns if column.endswith("/score")]
    known = {*_MLFLOW, *(f"{scorer}{end}" for scorer in scorers for end in ("/score", "/justification"))}
    rows: list[Row] = []
    for cells in map(as_list, document["data"]):
        row = dict(zip(columns, cells, strict=False))
        about = {_MLFLOW[column]: value for column, value in row.items() if column in _MLFLOW and value is not None}
        if (latency := _milliseconds(about.pop("latency", None))) is not None:
            about["latency_ms"] = latency
        about["metadata"] = _further(row, known)
        for scorer in scorers:
            said = {"scorer": scorer, "score": row.get(f"{scorer}/score")}
            rows.append({**about, **said, "explanation": row.get(f"{scorer}/justification")})
    return _results("MLflow", name.partition(".")[0], rows, content_hash([name, rows]), Counter())


# Langfuse: traces with the scores given to them.


def is_langfuse(document: Any) -> bool:
    """Tell whether a decoded document is traces of Langfuse that have scores."""
    traces = as_list(document.get("data")) if isinstance(document, dict) else as_list(document)
    return bool(traces) and all(
        isinstance(each, dict) and "output" in each and isinstance(each.get("scores"), list) for each in traces
    )


def read_langfuse(document: Any, name: str) -> list[ToolResults]:
    """Read traces, as one task for each name of a trace; what has no score is unscored."""
    by_task: dict[str, list[Row]] = {}
    left_over: Counter[str] = Counter()
    for trace in objects(document.get("data") if isinstance(document, dict) else document):
        rows = by_task.setdefault(as_text(trace, "name") or name.partition(".")[0], [])
        models = [each["model"] for each in objects(trace, "observations") if each.get("model")]
        metadata = as_mapping(trace, "metadata")
        about = {
            "sample_id": as_text(metadata.get("item_id") or trace.get("id")),
            "input": _plain(trace.get("input")),
            "reply": _plain(trace.get("output")),
            "target": metadata.get("expected_output"),
            "model": models[-1] if models else None,
            "cost_usd": trace.get("totalCost") or None,
            "latency_ms": _milliseconds(trace.get("latency")),
            "metadata": metadata,
        }
        scores = [each for each in objects(trace, "scores") if each.get("name")]
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
    return as_text(value["content"] if isinstance(value, dict) and isinstance(value.get("content"), str) else value)


# OpenAI's evals (`oaieval`): a line with the run's spec, a line an event, and the final report.


def is_spec(line: Any) -> bool:
    """Tell whether a decoded line is the first of a log."""
    return as_mapping(line, "spec").keys() >= {"eval_name", "run_id", "completion_fns"}


def read_log(lines: Sequence[str], name: str) -> ToolResults:
    """Read the lines of a log. Raises SourceError where one is no JSON, or there is no sample."""
    decoded = objects(values.decoded_lines(lines, name))
    spec = as_mapping(decoded[0], "spec")
    report = next((as_mapping(each, "final_report") for each in decoded if "final_report" in each), {})
    model = str(next(iter(as_list(spec, "completion_fns")), "unnamed model"))
    events: dict[str, dict[str, list[dict[str, Any]]]] = {}
    left_over: Counter[str] = Counter()
    for each in (each for each in decoded if "sample_id" in each):
        if (kind := each.get("type")) in ("sampling", "match", "metrics"):
            events.setdefault(str(each["sample_id"]), {}).setdefault(kind, []).append(as_mapping(each, "data"))
        else:
            left_over[f"{kind} events"] += 1
    if not events:
        raise SourceError(f"{name} holds no sample")
    rows = [{"sample_id": of, "model": model, **row} for of, own in events.items() for row in _event_rows(of, own)]
    task, run_id = str(spec.get("base_eval") or spec["eval_name"]), str(spec["run_id"])
    results = _results("OpenAI evals", task, rows, run_id, left_over, str(spec["eval_name"]))
    ours = mean([score for scores in by_sample(results.samples, "match").values() for score in scores])
    headlines = [
        Headline(f"{metric} of {model}", said, ours if metric == "accuracy" else None)
        for metric, value in report.items()
        if (said := as_score(value)) is not None
    ]
    return replace(results, began=as_text(spec, "created_at") or "", headlines=headlines)


def _event_rows(sample_id: str, events: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Write the events of a sample as rows: one for each match and metric, or one that is unscored."""
    asked = next(iter(events.get("sampling", ())), {})
    matches, prompt, sampled = events.get("match", ()), asked.get("prompt"), asked.get("sampled")
    plain = [{"role": "user", "content": prompt}]
    messages = plain if isinstance(prompt, str) else [*map(values.chat_message, objects(prompt))]
    first = sampled[0] if isinstance(sampled, list) and sampled else sampled
    texts = [first, *(each.get("sampled") for each in matches)]
    about = {
        "input": str(messages[-1]["content"]) if messages else sample_id,
        "messages": messages,
        "reply": next((as_text(text) for text in texts if text is not None), None),
        "target": matches[-1].get("expected") if matches else None,
        "input_tokens": as_mapping(asked, "usage").get("prompt_tokens"),
        "output_tokens": as_mapping(asked, "usage").get("completion_tokens"),
    }
    said: list[Row] = [
        {"scorer": "match", "score": each.get("correct"), "correct": each.get("correct"), "answer": each.get("picked")}
        for each in matches
    ]
    said += [{"scorer": metric, "score": of} for each in events.get("metrics", ()) for metric, of in each.items()]
    return [{**about, **each} for each in said or [{"scorer": "match"}]]
