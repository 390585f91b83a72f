"""Tables of results, and what OpenAI evals, MLflow and Langfuse write: each answer with every score."""

import json
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.sdk.tool_results import ToolResults, ToolSample
from evalake.suites.declared.formats.detect import read_tool_results


def written(folder: Path, name: str, content: Any) -> ToolResults:
    lines = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(lines)
    (read,) = read_tool_results([folder / name])
    return read


def verdicts(sample: ToolSample) -> dict[str, tuple[float | None, bool | None, str | None]]:
    return {each.scorer: (each.score, each.correct, each.explanation) for each in sample.scores}


def test_a_table_is_read_by_its_mapping_with_an_answer_for_all_its_scorers(tmp_path: Path) -> None:
    rows = ("Who?;Me;gpt;kind;short;0,5;a", "Who?;Me;gpt;right;;1;a", "Why?;So;gpt;right;;0;b")
    text = "\n".join(["frage;antwort;wer;note;grund;punkte;tag", *rows])
    (tmp_path / "mine.csv").write_bytes(text.encode("utf-16"))
    mapping = "input=frage&reply=antwort&model=wer&scorer=note&explanation=grund&score=punkte"
    (read,) = read_tool_results([tmp_path / f"mine.csv?{mapping}"])
    assert (read.task, [sample.input for sample in read.samples]) == ("mine", ["Who?", "Why?"])
    first = read.samples[0]
    assert verdicts(first) == {"kind": (None, None, "short"), "right": (1.0, True, None)}
    assert (first.scores[0].value, first.metadata, first.model, first.reply.text) == ("0,5", {"tag": "a"}, "gpt", "Me")
    with pytest.raises(SourceError, match="its mapping names input, reply, and score or correct"):
        read_tool_results([tmp_path / "mine.csv?input=frage"])


def test_what_a_scorer_of_numbers_says_besides_is_no_score(tmp_path: Path) -> None:
    rows = ["q0,r,mark,1", "q0,r,tone,warm", "q1,r,mark,nan", "q2,r,mark,x"]
    read = written(tmp_path, "t.csv", "\n".join(["input,reply,scorer,score", *rows]))
    values = {sample.input: [each.value for each in sample.scores] for sample in read.samples}
    assert values == {"q0": ["1", "warm"], "q1": [None], "q2": [None]}


def test_a_table_with_plain_names_needs_no_mapping(tmp_path: Path) -> None:
    rows = [{"input": "1+1", "reply": str(n), "correct": n == 2, "latency_ms": 5} for n in (2, 3)]
    read = written(tmp_path, "sums.jsonl", "\n".join(map(json.dumps, rows)))
    assert [(each.scores[0].correct, each.repeat, each.reply.latency_ms) for each in read.samples] == [
        (True, 0, 5),
        (False, 1, 5),
    ]


def test_a_log_of_openai_evals_gives_its_report(tmp_path: Path) -> None:
    spec = {
        "completion_fns": ["gpt-x"],
        "eval_name": "sums.dev.v0",
        "base_eval": "sums",
        "split": "dev",
        "run_config": {},
    }
    lines: list[dict[str, Any]] = [
        {"spec": {**spec, "created_by": "", "run_id": "r1", "created_at": "2026-01-01 10:00:00"}}
    ]
    for number, correct in enumerate((True, False)):
        prompt = [{"role": "system", "content": "Add."}, {"role": "user", "content": f"1+{number}"}]
        match = {"correct": correct, "expected": "2", "picked": "2" if correct else None, "sampled": "2"}
        for kind, data in (("sampling", {"prompt": prompt, "sampled": ["2"]}), ("match", match)):
            about = {"run_id": "r1", "event_id": len(lines), "sample_id": f"sums.dev.{number}", "type": kind}
            lines.append({**about, "data": data, "created_by": "", "created_at": "2026-01-01 10:00:00"})
    lines.append({"final_report": {"accuracy": 0.5, "boostrap_std": 0.1}})
    read = written(tmp_path, "log.jsonl", "\n".join(map(json.dumps, lines)))
    assert [(each.input, each.reply.text, each.scores[0].correct) for each in read.samples] == [
        ("1+0", "2", True),
        ("1+1", "2", False),
    ]
    assert [(each.name, each.agrees) for each in read.headlines] == [
        ("accuracy of gpt-x", True),
        ("boostrap_std of gpt-x", False),
    ]


def test_the_table_of_mlflow_has_a_scorer_for_each_metric(tmp_path: Path) -> None:
    columns = [
        "inputs",
        "ground_truth",
        "outputs",
        "topic",
        "exact_match/v1/score",
        "kind/v1/score",
        "kind/v1/justification",
    ]
    table = {
        "columns": columns,
        "data": [["Who?", "Me", "Me", "a", 1, 4, "polite"], ["Why?", "So", "No", "b", 0, 2, None]],
    }
    read = written(tmp_path, "eval_results_table.json", table)
    assert verdicts(read.samples[0]) == {"exact_match/v1": (1.0, True, None), "kind/v1": (4.0, None, "polite")}
    assert (read.samples[1].reply.text, read.samples[1].target, read.samples[1].metadata) == (
        "No",
        {"target": "So"},
        {"topic": "b"},
    )


def test_traces_of_langfuse_have_their_scores(tmp_path: Path) -> None:
    trace = {
        **{"id": "t1", "name": "support", "latency": 1.5, "totalCost": 0, "metadata": None},
        "input": {"messages": [{"role": "user", "content": "Who?"}]},
        "output": {"role": "assistant", "content": "Me"},
        "observations": [{"type": "GENERATION", "model": "gpt-x"}],
        "scores": [
            {"name": "helpful", "value": 0.7, "dataType": "NUMERIC", "comment": "kind"},
            {"name": "true", "value": 1, "stringValue": "True", "dataType": "BOOLEAN", "comment": None},
            {"name": "tone", "value": None, "stringValue": "warm", "dataType": "CATEGORICAL", "comment": None},
        ],
    }
    read = written(tmp_path, "traces.json", {"data": [trace, {**trace, "id": "t2", "scores": []}], "meta": {}})
    first, second = read.samples
    assert verdicts(first) == {"helpful": (0.7, None, "kind"), "true": (1.0, True, None), "tone": (None, None, None)}
    assert (first.input, first.reply.text, first.reply.latency_ms, first.model, first.scores[2].value) == (
        "Who?",
        "Me",
        1500,
        "gpt-x",
        "warm",
    )
    assert (read.left_over, [each.score for each in second.scores]) == ({"traces without a score": 1}, [None])
