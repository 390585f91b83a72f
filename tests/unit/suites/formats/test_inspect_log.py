"""Logs of Inspect: what is read of them, and which are refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.suites.declared.formats import inspect_log
from evalake.suites.declared.formats.detect import read_tool_results
from tests.unit.suites.formats.logs import DEFLATED, ZSTANDARD, archive, header, sample


@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_a_log_gives_the_same_whether_deflated_zstandard_or_json(method: int) -> None:
    samples = [sample(1), sample("two", "I", "6")]
    read = inspect_log.read_archive(archive(header(), samples, method), "x.eval")
    assert read == inspect_log.read_document({**header(), "samples": samples}, "x.json")
    assert (read.tool, read.task, read.dataset) == ("Inspect 0.3.285", "sums", "numbers")
    assert [(each.sample_id, each.scores[0].correct) for each in read.samples] == [("1", True), ("two", False)]
    reply = read.samples[0].reply
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.latency_ms) == ("5", 20, 5, 500.0)
    assert read.samples[0].scores[0].explanation == "it says 5"


@pytest.mark.parametrize(
    ("value", "score", "correct"),
    [("C", 1.0, True), ("I", 0.0, False), ("P", 0.5, False), ("N", 0.0, False), (True, 1.0, True), (3.5, 3.5, None)],
)
def test_values_become_scores_as_inspect_has_them(value: object, score: float, correct: bool | None) -> None:
    (read,) = inspect_log.read_document({**header(), "samples": [sample(1, value)]}, "x").samples
    assert (read.scores[0].score, read.scores[0].correct) == (score, correct)


def test_parts_of_a_value_are_scorers_of_their_own() -> None:
    (read,) = inspect_log.read_document({**header(), "samples": [sample(1, {"a": 0.25, "b": "C"})]}, "x").samples
    assert {each.scorer: each.score for each in read.scores} == {"match.a": 0.25, "match.b": 1.0}


def test_figures_are_recomputed_over_samples_whose_epochs_are_averaged() -> None:
    values = {("a", 1): "C", ("a", 2): "I", ("b", 1): "C", ("b", 2): "C"}
    samples = [{**sample(name, value), "epoch": epoch} for (name, epoch), value in values.items()]
    stated = {"accuracy": 0.75, "stderr": 0.25, "own": 1.0}
    metrics: dict[str, Any] = {n: {"name": n, "value": v, "params": {}} for n, v in stated.items()}
    log = {**header(), "results": {"scores": [{"name": "match", "scorer": "match", "metrics": metrics}]}}
    read = inspect_log.read_document({**log, "samples": samples}, "x")
    assert [(each.ours, each.agrees) for each in read.headlines] == [(0.75, True), (0.25, True), (None, False)]
    assert [each.repeat for each in read.samples] == [0, 1, 0, 1]


@pytest.mark.parametrize("grader", [{"span_id": "grade"}, {"span_id": "solve", "role": "grader"}])
def test_what_a_scorer_asks_the_same_model_is_no_call_of_the_subject(grader: dict[str, str]) -> None:
    logged = sample(1)
    (turn,) = logged["events"]
    graded = turn | grader | {"output": {**turn["output"], "time": 9.0, "usage": {"input_tokens": 700}}}
    spans = [("solve", None, "solver"), ("score", None, "scorers"), ("grade", "score", "scorer")]
    begun = [{"event": "span_begin", "id": name, "parent_id": of, "type": kind} for name, of, kind in spans]
    logged["events"] = [*begun, {**turn, "span_id": "solve"}, graded]
    logged["model_usage"] = {"openai/small": {"input_tokens": 720, "output_tokens": 5, "total_tokens": 725}}
    (read,) = inspect_log.read_document({**header(), "samples": [logged]}, "x").samples
    assert (read.reply.input_tokens, read.reply.output_tokens, read.reply.latency_ms) == (20, 5, 500.0)
    assert len(read.calls) == 1


def test_attachments_are_put_where_they_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = sample(1, attachments={"0" * 32: "a long question"}, input="attachment://" + "0" * 32)
    (read,) = inspect_log.read_document({**header(), "samples": [logged]}, "x").samples
    assert read.input == "a long question"
    monkeypatch.setattr(inspect_log, "LARGEST_REFERRED", 100)
    logged["messages"] = [{"role": "user", "content": "attachment://" + "0" * 32}] * 10
    with pytest.raises(SourceError, match="refers to its texts so often"):
        inspect_log.read_document({**header(), "samples": [logged]}, "x")


def test_a_log_that_did_not_end_well_says_so_and_counts_what_it_lacks() -> None:
    assert not inspect_log.is_archive(archive(None, [sample(1)], _journal__start__json=""))
    begun = {"eval": header(dataset={"name": "numbers", "sample_ids": [1, 2, 3]})["eval"]}
    content = archive(None, [sample(1)], DEFLATED, **{"_journal/start.json": json.dumps(begun)})
    unfinished = inspect_log.read_archive(content, "x.eval")
    assert len(unfinished.samples) == 1
    assert unfinished.left_over == {"end of the log, whose status is started": 1, "samples that the log lacks": 2}
    failed = {**header(), "status": "error", "error": {"message": "no\nquota"}, "samples": [sample(1)]}
    assert inspect_log.read_document(failed, "x").left_over["end of the log, whose status is error: no quota"] == 1


def test_a_log_of_version_1_says_how_it_is_converted() -> None:
    with pytest.raises(SourceError, match=r"x\.json is a log of Inspect.s version 1: convert it by"):
        inspect_log.read_document({**header(), "version": 1}, "x.json")


@pytest.mark.parametrize(
    ("reducer", "mean", "std"),  # as Inspect 0.3.285 computes them
    [("mode", 0.5, 0.5**0.5), ("max", 1.0, 0.0), ("pass_at_2", 11 / 12, 1 / 72**0.5), ("at_least_2", 0.5, 0.5**0.5)],
)
def test_epochs_are_reduced_as_inspect_does(reducer: str, mean: float, std: float) -> None:
    values = {1: "CIII", 2: "CCCI"} if reducer != "pass_at_2" else {1: "CCII", 2: "CCCC"}
    logged = [sample(n, value, epoch=e) for n, all_ in values.items() for e, value in enumerate(all_, start=1)]
    figures = {"mean": {"name": "mean", "value": mean}, "std": {"name": "std", "value": std}}
    scores = [{"name": "match", "scorer": "match", "reducer": reducer, "metrics": figures}]
    read = inspect_log.read_document({**header(), "results": {"scores": scores}, "samples": logged}, "x")
    assert [(each.name.split(" by ")[0], each.agrees) for each in read.headlines] == [
        (f"mean of match ({reducer})", True),
        (f"std of match ({reducer})", True),
    ]


def test_a_member_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_log, "LARGEST_MEMBER", 100_000)
    bomb = archive(header(), [sample(1, store={"x": "0" * 200_000})], ZSTANDARD)
    assert len(bomb) < 10_000
    with pytest.raises(SourceError, match="unpacks to more than 100000 bytes"):
        inspect_log.read_archive(bomb, "x.eval")


@pytest.mark.parametrize("method", [DEFLATED, ZSTANDARD])
def test_a_damaged_archive_is_refused_in_a_sentence(method: int) -> None:
    content = bytearray(archive(header(), [sample(1)], method))
    content[60:200] = bytes(140)
    with pytest.raises(SourceError, match=r"x\.eval"):
        inspect_log.read_archive(bytes(content), "x.eval")


@pytest.mark.parametrize(
    "name", ["inspect_capitals_choice.eval", "inspect_capitals_choice.json", "inspect_sums_with_tool.eval"]
)
def test_logs_that_inspect_wrote_give_its_figures(real_data: Path, name: str) -> None:
    (read,) = read_tool_results([real_data / "peers" / name])
    assert read.headlines
    assert all(each.agrees for each in read.headlines)
