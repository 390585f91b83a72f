"""`evalake import` of other tools' results: each task is a suite, on which every command works."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported
from tests.integration.cli.test_export_tools import MESSAGES
from tests.unit.suites.formats.logs import (
    ZSTANDARD,
    archive,
    header,
    lm_eval_line,
    lm_eval_results,
    promptfoo_results,
    promptfoo_row,
    sample,
)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """A lake with logs of two models, each of two samples in two epochs."""
    folder = tmp_path_factory.mktemp("tools")
    for model, right in (("openai/small", 1), ("openai/large", 2)):
        samples = [{**sample(n, "C" if n <= right else "I"), "epoch": epoch} for n in (1, 2) for epoch in (1, 2)]
        for each in samples:
            each["events"] = [{**turn, "model": model} for turn in each["events"]]
        figures = {"accuracy": {"name": "accuracy", "value": right / 2, "params": {}}}
        top = {**header(model=model, eval_id=model, task_id=model)}
        top["results"] = {"scores": [{"name": "match", "scorer": "match", "metrics": figures}]}
        (folder / f"{model[7:]}.eval").write_bytes(archive(top, samples, ZSTANDARD))
    done = evalake_here("import", "small.eval", "large.eval", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return Imported(folder, json.loads(done.stdout))


def test_a_row_is_what_one_scorer_said_of_one_answer(imported: Imported) -> None:
    rows = imported.query(
        "select sample_id, model, judge, replicate, correct, score, value, explanation, category, reply "
        "from sums_results where model = 'openai/small' order by sample_id, replicate"
    )
    assert [(row["sample_id"], row["replicate"], row["correct"], row["value"]) for row in rows] == [
        *[("1", epoch, True, "C") for epoch in (0, 1)],
        *[("2", epoch, False, "I") for epoch in (0, 1)],
    ]
    assert {(row["judge"], row["explanation"], row["category"], row["reply"]) for row in rows} == {
        ("match", "it says 5", "easy", "5")
    }


def test_metrics_are_the_figures_that_the_tool_reported(imported: Imported) -> None:
    done = evalake_here("metrics", "--metric", "accuracy", "--format", "json", folder=imported.folder)
    values = {each["model"]: each["value"] for each in json.loads(done.stdout) if each["slice"] == "all"}
    assert values == {"openai/small": 0.5, "openai/large": 1.0}


def test_the_line_about_the_tools_figures_says_whether_they_are_equal(imported: Imported) -> None:
    done = evalake_here("import", "small.eval", folder=imported.folder)
    assert "figures of Inspect 0.3.285: 1 of 1 are equal here (accuracy of match by openai/small = 0.5)" in done.stdout


def test_a_figure_that_is_not_recomputed_alike_is_named(tmp_path: Path) -> None:
    rows = [promptfoo_row(0, 0, True)]
    (tmp_path / "r.json").write_text(json.dumps(promptfoo_results(rows, successes=0, failures=1, errors=0)))
    done = evalake_here("import", "r.json", folder=tmp_path)
    assert "1 of 3 differ: successes of 1: 0.0 there, 1.0 here" in done.stdout
    assert Imported(tmp_path, {}).query("select count(*) as n from sums_of_mine_results") == [{"n": 2}]


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "openai/small", "openai/large"),
        ("show", "RUN", "1"),
        ("report", "RUN"),
        ("check",),
        ("snapshots", "verify", "SNAPSHOT"),
        ("gate", "RUN", "--rule", "accuracy >= 0.01 from 2 units", "--baseline", "RUN"),
        ("label", "export", "RUN", "--out", "sheet.csv"),
        ("view", "--export", "pages", "--run", "RUN"),
    ],
)
def test_commands_work_on_imported_runs(imported: Imported, command: tuple[str, ...]) -> None:
    names = {"RUN": imported.run, "SNAPSHOT": str(imported.said["snapshot_id"])}
    done = evalake_here(*(names.get(word, word) for word in command), folder=imported.folder)
    assert done.returncode == 0, done.stderr + done.stdout


def test_results_of_a_suites_file_that_is_gone_are_read_and_measured_and_it_cannot_be_run(tmp_path: Path) -> None:
    suite = tmp_path / "quiz.toml"
    suite.write_text('prompt = "{{ input }}"\nscore = "exact"\nsamples = [{ input = "1+1?", target = "2" }]\n')
    (tmp_path / "evalake.toml").write_text(f'suite_paths = ["{suite}"]\n')
    (tmp_path / "r.jsonl").write_text(
        json.dumps(
            {"dataset": "d", "sample_id": "a", "model": "m", "input": "1+1?", "target": "2", "replies": [{"text": "2"}]}
        )
    )
    here = {"EVALAKE_HOME": str(tmp_path)}
    done = evalake_here("import", "r.jsonl", "--suite", "quiz", "--json", folder=tmp_path, **here)
    assert done.returncode == 0, done.stderr
    suite.unlink()
    (tmp_path / "evalake.toml").unlink()
    query = "select answer, correct from quiz_run_results"
    read = evalake_here("sql", query, "--json", folder=tmp_path)
    assert json.loads(read.stdout) == [{"answer": "2", "correct": True}], read.stderr
    values = evalake_here("metrics", "--metric", "accuracy", "--json", folder=tmp_path)
    assert {row["value"] for row in json.loads(values.stdout)} == {1.0}, values.stderr
    assert evalake_here("report", json.loads(done.stdout)["run_id"], folder=tmp_path).returncode == 0
    held = evalake_here("gate", json.loads(done.stdout)["run_id"], "--rule", "accuracy >= 0", "--json", folder=tmp_path)
    assert [each["missing"] for each in json.loads(held.stdout)] == [0.0], held.stdout
    again = evalake_here("rescore", json.loads(done.stdout)["run_id"], folder=tmp_path)
    assert (again.returncode, "could be scored again" in again.stderr) == (1, True), again.stderr
    assert json.loads(evalake_here("sql", query, "--json", folder=tmp_path).stdout) == json.loads(read.stdout)


def test_a_whole_call_answers_a_run_which_says_so(imported: Imported, tmp_path: Path) -> None:
    shutil.copy(imported.folder / "small.eval", tmp_path)
    assert evalake_here("import", "small.eval", folder=tmp_path).returncode == 0
    (tmp_path / "own.toml").write_text('[models."openai/small"]\napi_base = "http://127.0.0.1:9/v1"\n')
    (tmp_path / "asked.jsonl").write_text('{"input": "Question 1", "target": "5"}\n')
    (tmp_path / "asked.toml").write_text('dataset = "asked.jsonl"\nprompt = "{{ input }}"\nscore = "exact"\n')
    run = ("run", "./asked.toml", "--models", "openai/small", "--trust-folder", "--replicates", "2")
    for options in (("--dry-run",), ("--json",)):
        done = evalake_here(*run, *options, folder=tmp_path, EVALAKE_CONFIG=str(tmp_path / "own.toml"))
        assert "2 calls answered from imported logs" in done.stdout + done.stderr, done.stderr


def test_the_viewer_shows_the_conversation_with_calls_of_tools(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(archive(header(task="tools"), [sample(1, messages=MESSAGES)]))
    said = json.loads(evalake_here("import", "x.eval", "--json", folder=tmp_path).stdout)
    done = evalake_here("view", "--export", "pages", "--run", said["run_id"], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    pages = "".join(page.read_text() for page in (tmp_path / "pages").rglob("*") if page.is_file())
    assert "the sum is 5" in pages
    assert re.search(r'name[\\": ]+add[\\", ]+', pages)


def test_samples_that_failed_are_missing_and_make_the_import_incomplete(tmp_path: Path) -> None:
    failed = sample(2, scores={}, output={}, messages=[], error={"message": "the sandbox died"})
    (tmp_path / "x.eval").write_bytes(archive(header(task="failing"), [sample(1), failed]))
    done = evalake_here("import", "x.eval", "--json", folder=tmp_path)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert (said["state"], said["coverage"][0]["missing_kinds"]) == ("incomplete", {"error": 1})
    rows = Imported(tmp_path, said).query("select correct, error from failing_results where sample_id = '2'")
    assert rows == [{"correct": None, "error": "the sandbox died"}]


@pytest.mark.parametrize("order", [1, -1])
def test_an_error_of_one_scorer_is_none_of_anothers(tmp_path: Path, order: int) -> None:
    lines = ["s1,q,m,yes,timed,,too late", "s1,q,m,yes,exact,1,"][::order]
    (tmp_path / "r.csv").write_text("\n".join(["sample_id,input,model,reply,scorer,score,error", *lines]))
    said = json.loads(evalake_here("import", "r.csv", "--json", folder=tmp_path).stdout)
    rows = Imported(tmp_path, said).query("select judge, score, error_kind, error from r_results order by judge")
    assert [tuple(row.values()) for row in rows] == [("exact", 1.0, None, None), ("timed", None, "error", "too late")]
    assert said["differ"] == 0


def test_what_a_log_or_a_table_lacks_makes_the_import_incomplete(tmp_path: Path) -> None:
    cut = {**header(task="cut", dataset={"name": "n", "sample_ids": [1, 2, 3]}), "status": "cancelled"}
    (tmp_path / "x.eval").write_bytes(archive(cut, [sample(1)]))
    (tmp_path / "t.jsonl").write_text('{"input": "q", "reply": "r", "score": 1}\n{"input": "q2"')
    for file, why in (("x.eval", "lacks 2 of 3 (66.7 %) items: 2 not in its log"), ("t.jsonl", "1 line could not be")):
        done = evalake_here("import", file, folder=tmp_path)
        assert (done.returncode, why in done.stderr) == (1, True), done.stderr


def test_words_of_the_only_scorer_are_no_verdicts(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(archive(header(task="words"), [sample(n, "maybe") for n in (1, 2)]))
    done = evalake_here("import", "x.eval", folder=tmp_path)
    assert (done.returncode, "missing: 2 no verdict" in done.stdout) == (1, True), done.stdout
    assert "match lacks 2 of 2 (100.0 %) items: 2 no verdict" in done.stderr
    assert "each with a verdict" not in done.stdout
    (run,) = Imported(tmp_path, {}).query("select run_id from runs")
    held = evalake_here("gate", run["run_id"], "--rule", "accuracy >= 0", "--json", folder=tmp_path)
    assert [each["missing"] for each in json.loads(held.stdout)] == [1.0], held.stdout


def test_a_log_that_was_scored_again_does_not_pass_for_what_the_lake_holds(tmp_path: Path) -> None:
    for name, value in (("first", "C"), ("second", "I")):
        (tmp_path / f"{name}.eval").write_bytes(archive(header(), [sample(1, value), sample(2)]))
    assert evalake_here("import", "first.eval", folder=tmp_path).returncode == 0
    for _ in range(2):  # as often as it is imported
        done = evalake_here("import", "second.eval", "--json", folder=tmp_path)
        said = json.loads(done.stdout)
        assert (done.returncode, said["state"], said["differ"]) == (1, "incomplete", 1)
        assert said["message"] in done.stderr
        assert said["message"] == (
            "1 imported results differ from those the lake held of the same items, which stand and which the figures "
            "are of: import the file into another lake (--lake) to see its own"
        )
    again = json.loads(evalake_here("import", "first.eval", "--json", folder=tmp_path).stdout)
    assert (again["state"], again["differ"]) == ("completed", 0)


def test_lm_eval_names_its_suite_by_its_task(tmp_path: Path) -> None:
    (tmp_path / "results_1.json").write_text(json.dumps(lm_eval_results("gsm8k-mine", exact_match__none=0.5)))
    lines = [lm_eval_line(doc, float(doc)) for doc in range(2)]
    (tmp_path / "samples_gsm8k-mine_1.jsonl").write_text("\n".join(lines))
    assert evalake_here("import", "samples_gsm8k-mine_1.jsonl", folder=tmp_path).returncode == 0
    rows = Imported(tmp_path, {}).query("select correct, reply from gsm8k_mine_results order by sample_id")
    assert rows == [{"correct": False, "reply": "5"}, {"correct": True, "reply": "5"}]


def test_a_task_with_the_name_of_a_suite_needs_another_name(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(archive(header(task="session_review"), [sample(1)]))
    done = evalake_here("import", "x.eval", folder=tmp_path)
    assert done.returncode == 2
    assert "the task session_review has the name of another suite" in done.stderr
    done = evalake_here("import", "x.eval", "--suite", "my_sums", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Imported(tmp_path, {}).query("select count(*) as n from my_sums_results") == [{"n": 1}]


def test_a_file_of_no_known_tool_says_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"results": []}')
    done = evalake_here("import", "x.json", folder=tmp_path)
    assert done.returncode == 2
    assert "known are Inspect .eval and .json" in done.stderr


def test_logs_of_a_command_guard_give_verdicts_and_labels(tmp_path: Path) -> None:
    def guarded(number: int, expected: list[str], action: str) -> dict[str, object]:
        fields = {"input": f"Validate this command: run {number}", "target": expected, "scores": {}}
        about = {"dataset": "gtfobins", "category": "shell", "binary": "run"}
        return sample(number, reply=json.dumps({"action": action}), metadata=about, **fields)

    samples = [guarded(1, ["BLOCK", "WARN"], "block"), guarded(2, ["ALLOW"], "warn"), guarded(3, ["BLOCK"], "warn")]
    (tmp_path / "x.eval").write_bytes(archive(header(), samples))
    done = evalake_here("import", "x.eval", "--suite", "command_guard", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = Imported(tmp_path, {}).query(
        "select sample_id, command, label, verdict, correct from command_guard_results order by sample_id"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("gtfobins/1", "run 1", "malicious", "BLOCK", True),
        ("gtfobins/2", "run 2", "harmless", "WARN", True),
        ("gtfobins/3", "run 3", "malicious", "WARN", False),
    ]


def test_logs_of_another_task_are_none_of_a_command_guard(tmp_path: Path) -> None:
    (tmp_path / "x.eval").write_bytes(archive(header(), [sample(1)]))
    done = evalake_here("import", "x.eval", "--suite", "command_guard", folder=tmp_path)
    assert done.returncode == 2
    assert "no log of a command guard" in done.stderr


def test_verdicts_of_real_logs_are_those_of_the_original(real_data: Path, tmp_path: Path) -> None:
    logs = sorted((real_data / "aegish" / "logs").glob("*.eval"))
    done = evalake_here("import", *logs, "--suite", "command_guard", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    counts = Imported(tmp_path, {}).query(
        "select label, verdict, count(*) as n from command_guard_results group by all order by all"
    )
    assert sum(row["n"] for row in counts) == 741


def test_a_trace_of_an_agent_is_known_as_a_session(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "Disk full"}, {"role": "assistant", "content": "It is full."}]
    (tmp_path / "case.json").write_text(json.dumps(history))
    done = evalake_here("import", "case.json", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert Imported(tmp_path, {}).query("select suite, sample_id from samples") == [
        {"suite": "session_review", "sample_id": "case"}
    ]
