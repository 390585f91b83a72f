"""docs/add-a-suite.md is true: its suite runs, imports, is queried, reported and checked as it stands."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalake.admin.roadmap import roadmap_suites
from evalake.core.errors import ConfigurationError, SuiteError, UsageError
from evalake.request import RunRequest
from evalake.server.viewer.overview import metric_history
from evalake.server.viewer.run_list import WantedRuns, run_page
from evalake.storage.lake import Lake
from evalake.suites.registry import all_contracts, suite, suite_names
from evalake.tasks.calibrate import calibrated_suites
from evalake.tasks.preflight import check
from evalake.tasks.runtime import runs
from tests.integration.cli.command import evalake_here
from tests.integration.storage.sql.engine import answered
from tests.servers.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "add-a-suite.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
QUESTIONS, RECORDED = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
(PEOPLE,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "review.md").read_text("utf-8"), flags=re.DOTALL)
(SETTING,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)

MODEL, JUDGE = "openai/answerer", "openai/judge"


class Place:
    """A folder outside the checkout, with the suite of the page and the configuration of whoever wrote it."""

    def __init__(self, folder: Path) -> None:
        suite = folder / "my-suites" / "quiz"
        suite.mkdir(parents=True)
        (suite / "suite.py").write_text(CODE, encoding="utf-8")
        (suite / "starter.jsonl").write_text(QUESTIONS, encoding="utf-8")
        own = folder / "own" / "evalake" / "evalake.toml"
        own.parent.mkdir(parents=True)
        own.write_text(SETTING.replace("/home/me", str(folder)))
        self.work = folder / "work"
        self.work.mkdir()
        self.environment = {"XDG_CONFIG_HOME": str(folder / "own"), "OPENAI_API_KEY": "sk-of-a-test"}

    def evalake(self, *arguments: object, code: int = 0) -> str:
        """Run a command that ends with this exit code; what it prints."""
        done = evalake_here(*arguments, folder=self.work, **self.environment)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows that a query gives."""
        return answered(Lake(str(self.work / "lake")), all_contracts(), sql).to_dicts()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def test_the_suite_is_short() -> None:
    lines = [line for line in CODE.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert len(lines) <= 120


def test_it_runs_imports_is_queried_reported_and_checked(
    place: Place, model_server: ModelServer, prefect_api: str
) -> None:
    place.environment["PREFECT_API_URL"] = prefect_api
    model_server.rule(model="answerer", reply="It is Paris.")
    model_server.rule(model="answerer", contains="spider", reply="eight")
    model_server.rule(model="judge", reply='{"verdict": "right"}')
    model_server.rule(model="judge", contains="Japan", reply='Well. {"verdict": "wrong"}')
    configured = "\n".join(
        f'[models."{name}"]\napi_base = "{model_server.api_base}"\nprice = {{ input = 1.0, output = 2.0 }}'
        for name in (MODEL, JUDGE)
    )
    (place.work / "models.toml").write_text(configured)
    said = place.evalake("run", "quiz", "--models", MODEL, "--judges", JUDGE, "--config", "models.toml")
    assert "Quiz" in said
    assert "calls: 6 made" in said
    page = next(place.work.glob("evalake-reports/**/*.html")).read_text(encoding="utf-8")
    assert "What is the capital of Japan?" in page

    rows = place.rows("select sample_id, answer, correct, judge, input_tokens, judge_cost_usd from quiz_results")
    assert {row["sample_id"]: row["correct"] for row in rows} == {"france": True, "japan": False, "legs": True}
    assert {row["judge"] for row in rows} == {JUDGE}
    assert all(row["input_tokens"] == 20 and row["judge_cost_usd"] == pytest.approx(30e-6) for row in rows)
    values = place.rows("select metric, value from latest_metrics where slice = 'all' and suite = 'quiz'")
    metrics = {row["metric"]: row["value"] for row in values}
    assert metrics["accuracy"] == pytest.approx(2 / 3)
    assert metrics["cost_usd_total"] == pytest.approx(3 * 2 * 30e-6)
    assert metrics["calls_made"] == 6

    file = place.work / "results.jsonl"
    file.write_text(RECORDED + '{"id": 7}\n', encoding="utf-8")
    place.evalake("import", file, "--suite", "quiz", code=1)  # for one line is none
    (imported,) = place.rows("select sample_id, correct from quiz_results where origin = 'import'")
    assert imported == {"sample_id": "italy", "correct": True}
    (refused,) = place.rows("select reason from quarantine")
    assert refused["reason"].startswith("results.jsonl:2: unknown field 'id'")
    assert len(model_server.seen) == 6
    place.evalake("check")


def test_it_is_labelled_by_people_once_it_declares_the_questions_of_the_page_on_review(place: Place) -> None:
    code = CODE.replace("SUITE = Suite(", f"{PEOPLE}\nSUITE = Suite(\n    people=LABELLING,")
    (place.work.parent / "my-suites" / "quiz" / "suite.py").write_text(code, encoding="utf-8")
    (place.work / "results.jsonl").write_text(RECORDED, encoding="utf-8")
    place.evalake("import", "results.jsonl", "--suite", "quiz")
    (run,) = (row["run_id"] for row in place.rows("select run_id from runs"))
    place.evalake("label", "export", run, "--out", "sheet.jsonl")
    (line,) = (json.loads(each) for each in (place.work / "sheet.jsonl").read_text("utf-8").splitlines())
    assert (line["question"], line["answer"], line["expected"]) == ("What is the capital of Italy?", "Rome", "Rome")
    assert line["fill_in"] == "right"
    (place.work / "sheet.jsonl").write_text(json.dumps(line | {"right": "yes"}), encoding="utf-8")
    place.evalake("label", "import", "sheet.jsonl", "--suite", "quiz", "--annotator", "ann")
    (row,) = json.loads(place.evalake("label", "agreement", run, "--json"))
    assert (row["judge"], row["decision"], row["agreement"], row["n"]) == ("openai/o4", "right", 1.0, 1)


def test_a_suite_that_declares_no_questions_is_not_labelled(place: Place) -> None:
    (place.work / "results.jsonl").write_text(RECORDED, encoding="utf-8")
    place.evalake("import", "results.jsonl", "--suite", "quiz")
    (run,) = (row["run_id"] for row in place.rows("select run_id from runs"))
    assert place.evalake("label", "export", run, code=2) == ""


def test_code_that_changes_under_one_scorer_version_is_told(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    lake, file = place.work / "lake", place.work.parent / "my-suites" / "quiz" / "suite.py"
    request = RunRequest("quiz", lake=str(lake), models=(MODEL,), judges=(JUDGE,))
    plan = check(request, dry_run=True)
    now = datetime.now(UTC)
    runs.save(plan.lake, runs.Run("first", "quiz", "run", plan.parameters, {}, plan.models, plan.judges, 1, 1, now))
    check(request, dry_run=True)
    assert "has changed since" not in caplog.text
    file.write_text(f"{CODE}\n# another way of scoring\n", encoding="utf-8")
    check(request, dry_run=True)
    assert "the code of quiz has changed since the run first, its scorer version" in caplog.text
    assert "`evalake rescore first`" in caplog.text


def test_a_judge_is_asked_for_by_name(place: Place) -> None:
    with pytest.raises(UsageError, match="name a judge with --judges"):
        check(RunRequest("quiz", lake=str(place.work / "lake"), models=(MODEL,)))


def test_a_suite_that_lies_in_the_working_directory_is_not_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.work / "evalake.toml").write_text('suite_paths = ["../my-suites"]')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place.work))
    monkeypatch.chdir(place.work)
    assert "quiz" not in suite_names()


def test_two_suites_of_one_name_are_told_with_their_places(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    again = place.work / "others" / "quiz"
    again.mkdir(parents=True)
    (again / "suite.py").write_text(CODE, encoding="utf-8")
    file = place.work / "named.toml"
    file.write_text('suite_paths = ["others"]')
    monkeypatch.setenv("EVALAKE_CONFIG", str(file))
    with pytest.raises(ConfigurationError, match=r"two suites are called quiz: rename .*my-suites.* or .*others"):
        suite_names()


def test_code_that_cannot_be_imported_is_told_by_its_place_and_stops_nothing_else(place: Place) -> None:
    broken = place.work.parent / "my-suites" / "broken"
    broken.mkdir()
    (broken / "suite.py").write_text("SUITE = nothing", encoding="utf-8")
    with pytest.raises(SuiteError, match=r"the suite broken in .*broken/suite.py cannot be imported: NameError"):
        suite("broken")
    lake = Lake(str(place.work / "lake"))
    place.evalake("runs")
    assert run_page(lake, WantedRuns()).total == 0
    suites = {each.name for each in metric_history(lake, None, (), "all", None).suites}
    assert suites == set(suite_names()) - {"broken"} > {*roadmap_suites(), *calibrated_suites()}
