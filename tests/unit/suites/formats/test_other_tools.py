"""Results of other tools and of our own form."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.sdk.tool_results import ToolResults, ToolSample
from evalake.suites.declared.formats import inspect_log, json_lines, promptfoo
from evalake.suites.declared.formats.detect import read_tool_results
from evalake.suites.declared.imported import RETRIED, merge
from tests.unit.suites.formats.logs import (
    archive,
    header,
    lm_eval_line,
    lm_eval_results,
    promptfoo_results,
    promptfoo_row,
    sample,
)

# Results of lm-eval and promptfoo, how a file is known, and how several are merged.


def test_samples_of_lm_eval_give_its_figures() -> None:
    lines = [lm_eval_line(doc, float(doc < 2)) for doc in range(4)]
    results = lm_eval_results(exact_match__none=0.5, exact_match_stderr__none=1 / 12**0.5)
    read = json_lines.read_samples(lines, results, "sums", "x")
    assert [each.agrees for each in read.headlines] == [True, True]
    first = read.samples[0]
    assert (first.model, first.input, first.reply.text) == ("small", "Question 0", "5")
    assert [(each.scorer, each.correct) for each in first.scores] == [("exact_match", True)]


def test_a_metric_that_is_no_mean_is_not_called_equal() -> None:
    results = lm_eval_results(exact_match__none=0.5)
    results["configs"]["sums"]["metric_list"][0]["aggregation"] = "perplexity"
    (headline,) = json_lines.read_samples([lm_eval_line(0, 0.5)], results, "sums", "x").headlines
    assert headline.ours is None


def test_likelihoods_are_kept_as_the_reply() -> None:
    arguments = {f"gen_args_{n}": {"arg_0": "Question", "arg_1": f" {n}"} for n in range(2)}
    replies = [[["-1.5", "False"]], [["-0.5", "True"]]]
    line = lm_eval_line(0, 1.0, arguments=arguments, resps=replies, filtered_resps=[r[0] for r in replies])
    (read,) = json_lines.read_samples([line], lm_eval_results(), "sums", "x").samples
    assert json.loads(read.reply.text or "") == replies
    assert read.messages == [{"role": "user", "content": "Question"}]


def test_samples_of_lm_eval_find_the_results_file_of_their_evaluation(tmp_path: Path) -> None:
    for date, model in (("2026-01-01T00", "old"), ("2026-01-02T00", "new")):
        (tmp_path / f"results_{date}.json").write_text(json.dumps({**lm_eval_results(), "model_name": model}))
    (tmp_path / "samples_sums_2026-01-02T00.jsonl").write_text(lm_eval_line(0, 1.0))
    (read,) = read_tool_results([tmp_path / "samples_sums_2026-01-02T00.jsonl"])
    assert {each.model for each in read.samples} == {"new"}


def test_results_of_lm_eval_may_be_named_by_the_user(tmp_path: Path) -> None:
    (tmp_path / "mine_2026-01-02.json").write_text(json.dumps(lm_eval_results(exact_match__none=0.5)))
    named = tmp_path / "samples_sums_2026-01-02.jsonl"
    named.write_text("\n".join(lm_eval_line(doc, float(doc)) for doc in range(2)))
    (read,) = read_tool_results([named])
    assert ([each.agrees for each in read.headlines], read.samples[0].model) == ([True], "small")


def test_what_no_table_can_hold_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    odd = {**header(model="m\ud800", dataset={"name": "a\0b"}), "samples": [sample("\udfff", reply="\0")]}
    file.write_text(json.dumps(odd))
    ((read,),) = [each.samples for each in read_tool_results([file])]
    assert (read.model, read.sample_id, read.reply.text) == ("m?", "?", "?")


def test_samples_of_lm_eval_without_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / "samples_sums.jsonl").write_text(lm_eval_line(0, 1.0))
    with pytest.raises(SourceError, match=r"results_\*\.json"):
        read_tool_results([tmp_path / "samples_sums.jsonl"])


def test_results_of_promptfoo_give_what_passed_by_prompt_and_assertion() -> None:
    rows = [promptfoo_row(test, prompt, test == prompt) for test in range(2) for prompt in range(2)]
    read = promptfoo.read_document(promptfoo_results(rows, successes=2, failures=2, errors=0), "x.json")
    assert all(each.agrees for each in read.headlines)
    verdicts = {(each.sample_id, each.prompt_variant): each.scores[0].correct for each in read.samples}
    assert verdicts == {(f"test_{t}", f"prompt_{p}"): t == p for t in (1, 2) for p in (1, 2)}
    assert [each.scorer for each in read.samples[0].scores] == ["promptfoo", "contains"]
    assert read.samples[0].reply.cost_usd is None  # promptfoo writes 0 where it knows no price


def test_a_repeated_test_of_promptfoo_is_a_repeat_and_not_another_sample() -> None:
    rows = [promptfoo_row(0, 0, True), {**promptfoo_row(0, 0, False), "testIdx": 1}]
    read = promptfoo.read_document(promptfoo_results(rows), "x.json")
    assert [(each.sample_id, each.repeat) for each in read.samples] == [("test_1", 0), ("test_1", 1)]


def test_an_error_of_promptfoo_is_no_wrong_answer() -> None:
    row = {**promptfoo_row(0, 0, False), "failureReason": 2, "error": "no connection", "response": {}}
    (read,) = promptfoo.read_document(promptfoo_results([row]), "x.json").samples
    assert (read.error, read.scores[0].correct, read.scores[0].score) == ("no connection", None, None)


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b"PK\x03\x04", b'{"suite": "x"}\n{"suite": "y"}', b"\xff\xfe", b"{" * 9000]
)
def test_what_no_tool_wrote_is_of_no_known_tool(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert read_tool_results([tmp_path / "file"]) == []


def test_what_has_no_place_is_counted_in_a_packed_file_too(tmp_path: Path) -> None:
    document = promptfoo_results([{**promptfoo_row(0, 0, True), "verdictOfLater": 1}])
    document["results"]["results"].append(None)
    (tmp_path / "p.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    (results,) = read_tool_results([tmp_path / "p.json.gz"])
    assert [each.sample_id for each in results.samples] == ["test_1"]
    assert results.left_over == {"fields verdictOfLater": 1, "results that are no object": 1}


@pytest.mark.parametrize("name", ["x.eval", "samples_x.jsonl", "x.csv", "x"])
def test_an_empty_file_is_called_empty(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b" \n")
    with pytest.raises(SourceError, match=f"{name} is empty: there is no result"):
        read_tool_results([tmp_path / name])


def test_a_folder_of_logs_is_read_whole(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.eval").write_bytes(archive(header(task=name), [sample(1)]))
    assert [each.task for each in read_tool_results([tmp_path])] == ["a", "b"]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "c.eval").symlink_to(tmp_path / "a.eval")
    with pytest.raises(SourceError, match=r"c\.eval is not read: link that leads out"):
        read_tool_results([tmp_path / "logs"])


def test_a_retry_takes_the_place_of_what_failed() -> None:
    failed = sample(2, scores={}, output={}, messages=[], error={"message": "timeout"})
    first = inspect_log.read_document({**header(), "samples": [sample(1), failed]}, "x")
    later = header(eval_id="e2", created="2026-01-02T00:00:00+00:00", task_id="t2")
    retry = inspect_log.read_document({**later, "samples": [sample(2, "I")]}, "y")
    answers, left_out = merge([retry, first])
    assert {each.sample.sample_id: each.sample.error for each in answers} == {"1": None, "2": None}
    assert {(each.evaluation, each.sample.repeat) for each in answers} == {("e1", 0)}
    assert left_out[RETRIED] == 1


def test_another_evaluation_of_the_same_samples_is_a_repeat() -> None:
    first = inspect_log.read_document({**header(), "samples": [sample(1), sample(2)]}, "x")
    second = replace(first, evaluation="e2", began="2026-01-02", task_id="t2")
    answers, left_out = merge([first, second])
    assert [(each.sample.sample_id, each.sample.repeat) for each in answers] == [("1", 0), ("1", 1), ("2", 0), ("2", 1)]
    assert not left_out


def test_arguments_of_a_task_make_a_variant_and_no_repeat() -> None:
    plain = inspect_log.read_document({**header(task_args_passed={"cot": False}), "samples": [sample(1)]}, "x")
    reasoned = header(task_args_passed={"cot": True}, eval_id="e2", task_id="t2")
    thought = inspect_log.read_document({**reasoned, "samples": [sample(1)]}, "y")
    answers, _ = merge([plain, thought])
    assert [(each.sample.prompt_variant, each.sample.repeat) for each in answers] == [("cot=true", 0), ("direct", 0)]


@pytest.mark.parametrize("name", ["promptfoo_capitals_results.json", "lm_eval_samples_capitals_gen.jsonl"])
def test_results_that_tools_wrote_give_their_figures(real_data: Path, name: str) -> None:
    (read,) = read_tool_results([real_data / "peers" / name])
    assert read.headlines
    assert all(each.agrees for each in read.headlines)


# Tables of results, and what OpenAI evals, MLflow and Langfuse write: each answer with every score.


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
    with pytest.raises(SourceError, match="correct to its columns, which are frage, antwort, wer"):
        read_tool_results([tmp_path / "mine.csv?input=frage"])


def test_what_a_scorer_of_numbers_says_besides_is_no_score(tmp_path: Path) -> None:
    rows = ["q0,r,mark,1", "q0,r,tone,warm", "q1,r,mark,nan", "q2,r,mark,x"]
    read = written(tmp_path, "t.csv", "\n".join(["input,reply,scorer,score", *rows]))
    values = {sample.input: [each.value for each in sample.scores] for sample in read.samples}
    assert values == {"q0": ["1", "warm"], "q1": [None], "q2": [None]}


def test_a_table_with_plain_names_needs_no_mapping_and_the_same_answer_again_is_a_repeat(tmp_path: Path) -> None:
    rows = [{"input": "1+1", "reply": str(n), "correct": n == 2, "latency_ms": 5} for n in (2, 3, 2)]
    read = written(tmp_path, "sums.jsonl", "\n".join([*map(json.dumps, rows), "{"]))
    told = [(each.scores[0].correct, each.repeat, each.reply.latency_ms) for each in read.samples]
    assert told == [(True, 0, 5), (False, 1, 5), (True, 2, 5)]
    assert ([len(each.scores) for each in read.samples], [each.where for each in read.refused]) == (
        [1] * 3,
        ["sums.jsonl:4"],
    )


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
