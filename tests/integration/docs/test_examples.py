"""Six suites of examples/ run as files: offline by their own baselines, and against a model server."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from evalake.sdk import Sample
from tests.integration.cli.command import evalake_here
from tests.servers.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())

# What each model of an example gets right, of how many answers, by hand
OFFLINE = {
    "capitals": {"always-a": (1, 4)},
    "extraction": {"two-lamps": (2, 3)},
    "haiku": {"pond": (1, 2)},
    "mails": {"thanks": (3, 3)},
    "paraphrase": {"plants": (2, 3)},
    "sums": {"seven": (2, 4)},
}


class Place:
    """A folder with all examples, its own state, and a Prefect server."""

    def __init__(self, folder: Path, api: str) -> None:
        self.folder = folder / "work"
        shutil.copytree(EXAMPLES, self.folder / "suites")
        self.environment = {
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "PREFECT_API_URL": api,
            "EVALAKE_LAKE": str(self.folder / "lake"),
            "OPENAI_API_KEY": "sk-of-a-test",
        }

    def __call__(self, *words: object, code: int = 0) -> str:
        done = evalake_here(*words, folder=self.folder, **self.environment)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + (done.stderr if code else "")

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return json.loads(self("sql", sql, "--format", "json"))  # type: ignore[no-any-return]


@pytest.fixture
def place(tmp_path: Path, prefect_api: str) -> Place:
    made = Place(tmp_path, prefect_api)
    (made.folder / "evalake.toml").write_text('suite_paths = ["suites"]\n')
    made("trust")
    return made


def test_they_are_six_and_short() -> None:
    assert sorted(OFFLINE) == NAMES
    lines = {name: len(next((EXAMPLES / name).glob("suite.*")).read_text().split("\n")) - 1 for name in NAMES}
    assert lines["capitals"] <= 15
    assert lines["mails"] <= 25


@pytest.mark.parametrize("name", NAMES)
def test_offline_it_gives_what_a_reader_counts(name: str, place: Place) -> None:
    assert "correct: " in place("suite", "check", f"suites/{name}")
    place("run", name)
    counted = place.rows(
        f"select model, run_id, sum(correct::int)::int as right, count(*) as n, any_value(m.value) as accuracy "
        f"from {name}_run_results join latest_metrics m using (model, run_id) "
        "where m.metric = 'accuracy' and m.slice = 'all' group by all"
    )
    right = {row["model"].removeprefix(f"baseline/{name}-"): (row["right"], row["n"]) for row in counted}
    assert right == OFFLINE[name]
    assert [row["accuracy"] for row in counted] == [pytest.approx(row["right"] / row["n"]) for row in counted]
    (run,) = {row["run_id"] for row in counted}
    if name != "mails":
        return
    assert "3 answers in" in place("export", "canary", run)
    assert "is there already" in place("export", "canary", run, code=2)
    frozen = [
        json.loads(line) for line in (place.folder / "suites" / "mails" / "canary.jsonl").read_text().splitlines()
    ]
    assert [list(each) for each in frozen] == [["sample", "prompt_type", "answers"]] * 3
    Sample("mails", **frozen[0]["sample"])


def test_a_model_server_is_asked_and_every_command_works(place: Place, model_server: ModelServer) -> None:
    model_server.rule(model="good", contains="France", reply="A")
    model_server.rule(model="good", contains="Italy", reply="The answer is **B**.")
    model_server.rule(model="good", contains="Japan", reply="C) Tokyo")
    model_server.rule(model="good", contains="Australia", reply="<think>A?</think>I would say: Canberra")
    model_server.rule(model="bad", reply="A")
    models = "\n".join(
        f'[models."openai/{name}"]\napi_base = "{model_server.api_base}"\nprice = {{ input = 1.0, output = 2.0 }}'
        for name in ("good", "bad")
    )
    (place.folder / "evalake.toml").write_text(f'suite_paths = ["suites"]\n{models}\n')
    assert "has changed since you trusted it" in place("run", "capitals", code=2)
    place("trust")
    place("run", "capitals", "--models", "openai/good,openai/bad")
    assert len(model_server.seen) == 8
    (run,) = {row["run_id"] for row in place.rows("select run_id from runs")}
    sliced = place.rows(
        "select model, slice_value, value from latest_metrics where metric = 'accuracy' and slice = 'continent'"
    )
    by = {(row["model"], row["slice_value"]): row["value"] for row in sliced}
    assert by["openai/good", "Europe"] == 1.0
    assert by["openai/bad", "Europe"] == 0.5
    assert by["openai/good", "Oceania"] == 0.0
    unread = place.rows("select unreadable, answer from capitals_results where unreadable is not null")
    assert unread == [{"unreadable": "no_choice", "answer": None}]

    compared = json.loads(place("compare", f"{run}:openai/good", f"{run}:openai/bad", "--json"))
    (accuracy,) = (row for row in compared if row["metric"] == "accuracy")
    assert (accuracy["value_a"], accuracy["value_b"], accuracy["units"]) == (0.75, 0.25, 4)
    place("gate", run, "--rule", "accuracy >= 0.9", code=1)
    place("check")
    place("report", run)
    assert "0 rows landed" in place("rescore", run)
    assert "France" in place("label", "export", run)


def test_a_file_by_its_path_asks_for_trust_and_is_known_in_its_folder_afterwards(
    tmp_path: Path, prefect_api: str
) -> None:
    place = Place(tmp_path, prefect_api)
    shutil.copy(place.folder / "suites" / "capitals" / "questions.csv", place.folder)
    shutil.copy(place.folder / "suites" / "capitals" / "suite.toml", place.folder / "quiz.toml")
    shutil.rmtree(place.folder / "suites")
    assert "evalake trust" in place("run", "./quiz.toml", code=2)
    place("trust")
    place("run", "./quiz.toml")
    assert place.rows("select count(*) as n from quiz_results") == [{"n": 4}]
    (place.folder / "other.py").write_text("")
    assert "is not trusted" in place("run", "./quiz.toml", code=2)


def test_a_scorer_that_raises_is_told_by_its_line_and_the_others_go_on(place: Place) -> None:
    scorers = place.folder / "suites" / "mails" / "scorers.py"
    scorers.write_text("def brief(answer, target, row):\n    return row['topic'] != 'billing' or row['nothing']\n")
    place("trust")
    said = place("run", "mails", code=1)
    assert re.search(r"scorers\.py:2: the scorer of mails failed at the sample invoice: KeyError: 'nothing'", said)
    assert place.rows("select count(*) as n from mails_run_results") == [{"n": 2}]
    (refused,) = place.rows("select reason from quarantine")
    assert "KeyError" in refused["reason"]
    scorers.write_text("def brief(answer, target, row):\n    return True\n")
    place("trust")
    said = place("run", "mails", "--json")
    assert json.loads(said)["calls"]["made"] == 0
    (versions,) = place.rows("select count(distinct scorer_version) as n from mails_results")
    assert versions == {"n": 2}
    old = place.rows("select run_id from runs order by started_at limit 1")[0]["run_id"]
    assert "2 rows" in place("export", "results", old), "by the scorer that the run was measured with"
    assert not re.search("invoice", place("label", "export", old))


def test_a_broken_suite_is_left_out_and_the_others_run(place: Place) -> None:
    (place.folder / "suites" / "sums" / "suite.yaml").write_text("dataset: nix\n")
    place("trust")
    place("run", "capitals")
    assert "score" in place("run", "sums", code=1)
