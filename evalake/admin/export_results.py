"""The results of a run in the one shape that other tools' results have here, for the files of other tools."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from evalake.contracts.contract import Row
from evalake.contracts.tables import CALLS, SAMPLES
from evalake.core.errors import UsageError
from evalake.models.request import Reply
from evalake.sdk import Suite
from evalake.sdk.json_in_text import json_object
from evalake.sdk.tool_results import Scored, ToolResults, ToolSample
from evalake.storage.lake import Lake
from evalake.storage.ledger import KEY, Key, key_of, replies
from evalake.tasks.extract import sample_of
from evalake.tasks.measure import run_results

MOST_FROZEN = 24  # items: each is asked about five times on the first day
_ANSWER = ("dataset", "sample_id", "model", "prompt_type", "replicate")
_KINDS = {"correct": pl.Boolean, "score": pl.Float64}  # of what a suite says of a row; the others are texts
_OF_A_REPLY = (
    *("finish_reason", "model_reported", "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens"),
    *("cost_usd", "latency_ms", "error_kind", "reasoning", "tool_calls"),
)


def tool_results(
    lake: Lake, suite: Suite, run: Mapping[str, Any], rows: pl.DataFrame, absent: pl.DataFrame
) -> list[ToolResults]:
    """Gather the results of a run: one entry a dataset, model and prompt, each answer with the scores that it has.

    `absent` has the items without a row, and `why`: samples with an error.
    """
    viewing, missing = suite.presentation.viewing, suite.scoring.outcomes.missing
    saying = {"correct": viewing.correct, "score": viewing.score, "verdict": viewing.verdict, "error": viewing.error}
    told = rows.with_columns(
        (pl.lit(None) if of is None else of).cast(_KINDS.get(name, pl.String)).alias(f"told_{name}")
        for name, of in (saying | {"missing": missing}).items()
    )
    told = pl.concat([told, absent.with_columns(told_missing="why")], how="diagonal_relaxed").sort(*_ANSWER)
    calls, samples = _behind(lake, run["run_id"], told)
    gathered: dict[tuple[str, str, str], list[ToolSample]] = {}
    for _, part in told.group_by(_ANSWER, maintain_order=True):
        group = part.to_dicts()
        first = group[0]
        call = calls.get(key_of(first), {})
        key = (first["dataset"], first["model"], first["prompt_type"])
        gathered.setdefault(key, []).append(_sample(suite, group, call, samples.get(first["sample_hash"], {})))
    parameters = json_object(run.get("parameters") or "") or {}
    evaluations = parameters.get("evaluations", [])
    began = run["started_at"].isoformat()
    return [
        ToolResults(
            tool="evalake",
            task=suite.name,
            evaluation=str(evaluations[0]) if len(evaluations) == 1 else f"{run['run_id']}-{number}",
            began=began,
            task_id=f"{run['run_id']}-{number}",
            dataset=dataset,
            samples=answers,
        )
        for number, ((dataset, _, _), answers) in enumerate(gathered.items())
    ]


def _behind(lake: Lake, run_id: str, rows: pl.DataFrame) -> tuple[dict[Key, Row], dict[str, Row]]:
    """Read the calls behind result rows, and their samples, by hash."""
    asked = pl.col("prompt_hash").is_in(rows["prompt_hash"].unique().implode())
    calls = replies(lake.frame(CALLS).filter(asked), run_id).collect().iter_rows(named=True)
    known = lake.frame(SAMPLES).filter(pl.col("sample_hash").is_in(rows["sample_hash"].unique().implode()))
    samples: dict[str, Row] = {each["sample_hash"]: each for each in known.collect().iter_rows(named=True)}
    return {key_of(each): each for each in calls}, samples


def _sample(
    suite: Suite, group: Sequence[Mapping[str, Any]], call: Mapping[str, Any], sample: Mapping[str, Any]
) -> ToolSample:
    first = group[0]
    reply = Reply(call.get("response"), **{name: call[name] for name in _OF_A_REPLY if name in call})
    request = json_object(call.get("request") or "") or {}
    given = json.loads(sample["target"]) if sample.get("target") else None
    target, metadata = given, {name: sample[name] for name in ("label", "category") if sample.get(name) is not None}
    if isinstance(given, dict) and given.keys() == {"target", "metadata"}:  # of another tool
        target, metadata = given["target"], given["metadata"] or {}
    error = next((row["error"] for row in group if row.get("error")), None)
    return ToolSample(
        sample_id=first["sample_id"],
        input=sample.get("input") or "",
        target=target,
        model=first["model"],
        messages=request.get("messages", []),
        reply=reply,
        scores=[scored for row in group for scored in _scores(suite, row, several=len(group) > 1)],
        repeat=first["replicate"],
        prompt_variant=first["prompt_type"],
        metadata=metadata,
        error=error or (None if call.get("response") else first["told_missing"] or None),
    )


def _scores(suite: Suite, row: Mapping[str, Any], *, several: bool) -> Iterator[Scored]:
    """Yield the scores of an answer: by another tool's scorer, by a file's scorers, or by the whole suite."""
    if row["why"] is not None:
        return
    judge = row.get("judge")
    if {"value", "explanation", "answer"} <= row.keys():
        yield Scored(
            str(judge), _decoded(row["value"]), row["score"], row["correct"], row["answer"], row["explanation"]
        )
    elif {"scores", "passed", "reasons"} <= row.keys():
        scores, passed, reasons = (json.loads(row[name]) for name in ("scores", "passed", "reasons"))
        for name, score in scores.items():
            why = reasons.get(name)
            why = why if why is None or isinstance(why, str) else json.dumps(why, ensure_ascii=False)
            scorer = f"{name}@{judge}" if several and judge else name
            yield Scored(scorer, score, score, passed.get(name), row["answer"], why)
    else:
        correct, score = row["told_correct"], row["told_score"]
        number = score if score is not None or correct is None else float(correct)
        said = row["told_verdict"]
        yield Scored(str(judge or suite.name), said, number, correct, said, row["told_error"])


def _decoded(value: str | None) -> Any:
    """Decode a scorer's value, which is kept as text where it was one."""
    try:
        return None if value is None else json.loads(value)
    except ValueError:
        return value


def frozen_items(lake: Lake, suite: Suite, run_id: str) -> list[str]:
    """Write answers of a run as frozen items of a canary, evenly spread over its samples and models, as JSON.

    Raises UsageError where no judge says what answers are worth, or the run has no answer that a judge saw.
    """
    if not suite.is_judged or not suite.conversation.asks_subject:
        raise UsageError(f"no judge is asked about answers to {suite.name}: it needs no frozen items")
    rows = run_results(lake, suite, run_id, {}).collect()
    answers = rows.unique(KEY, keep="first").sort("sample_id", "model", "replicate")
    calls, samples = _behind(lake, run_id, answers)
    items = [
        (sample_of(samples[row["sample_hash"]]), row["prompt_type"], call["response"])
        for row in answers.iter_rows(named=True)
        if row["sample_hash"] in samples and (call := calls.get(key_of(row))) and call["response"]
    ]
    if not items:
        raise UsageError(f"the run {run_id} has no answer that could be frozen")
    most = min(MOST_FROZEN, len(items))
    frozen = []
    for sample, prompt_type, reply in (items[place * len(items) // most] for place in range(most)):
        known = {name: of for name, of in asdict(sample).items() if name != "suite" and of is not None}
        item = {"sample": known, "prompt_type": prompt_type, "answers": [reply]}
        frozen.append(json.dumps(item, ensure_ascii=False))
    return frozen
