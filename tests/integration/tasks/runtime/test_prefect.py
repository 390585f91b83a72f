"""A run as Prefect sees it: its context, artifacts and server."""

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, PREFECT_HOME, temporary_settings
from pydantic import ImportString, TypeAdapter

from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError
from evalake.storage.snapshots import find_snapshot
from evalake.suites.registry import suite
from evalake.tasks.runtime.artifacts import _report, _summary, headline, pages_of, reports_folder
from evalake.tasks.runtime.context import RunContext, options_of, prompt_types_of
from evalake.tasks.runtime.runs import Run
from evalake.tasks.runtime.server import SERVER, ServerError, create_database, require_server, scheduled_times
from tests.integration.storage.recorded_lake import JUDGES, MODELS

# A suite's options: its own defaults under what the configuration says, and what is refused.

GUARD = suite("command_guard")


def configured(**options: Any) -> Configuration:
    return Configuration(suites={GUARD.name: options})


def test_the_configuration_goes_before_the_suite(guard: RunContext) -> None:
    assert guard.options == GUARD.options
    assert options_of(GUARD, configured(target=0.5)) == {**GUARD.options, "target": 0.5}


@pytest.mark.parametrize(
    ("configuration", "told"),
    [
        (Configuration(suites={"poetry": {}}), "options of the unknown suite poetry: choose one of command_guard"),
        (configured(volume=11), "command_guard has no option volume: its options are"),
        (configured(target=1.5), "a number from 0 to 1, not 1.5"),
        (configured(target=True), "a number from 0 to 1, not True"),
        (configured(prompts={"direct": {"system": "x"}}), "the name of a prompt type of the suite"),
        (configured(prompts={"mine": {"melody": "x"}}), "has no part melody"),
    ],
)
def test_what_there_is_not_is_named(configuration: Configuration, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        options_of(GUARD, configuration)


def test_an_option_that_nobody_gave_a_value_is_no_part_of_any_definition() -> None:
    audits = suite("solidity_audit")
    assert "aggregation" not in options_of(audits, Configuration())
    given = Configuration(suites={audits.name: {"aggregation": "dawid_skene"}})
    assert options_of(audits, given)["aggregation"] == "dawid_skene"


def test_prompt_types_are_the_suites_and_then_the_users() -> None:
    options = options_of(GUARD, configured(prompts={"mine": {"system": "Guard."}}))
    assert prompt_types_of(GUARD, options) == (*GUARD.prompts.types, "mine")


# What a run leaves in Prefect: its headline, and where its reports lie.


def test_the_headline_has_a_row_a_model_with_what_the_suite_ranks_by(guard: RunContext) -> None:
    rows = headline(guard, find_snapshot(guard.lake, run_id=guard.run_id)["snapshot_id"])
    assert [list(row) for row in rows] == [["model", *guard.suite.metrics.headline]] * 2
    detection = {row["model"]: row["malicious_detection_rate"] for row in rows}
    assert detection == {MODELS[0]: "50.0%* [29.9–70.1], n = 20", MODELS[1]: "100.0%* [83.9–100.0], n = 20"}


def test_it_links_to_the_pages_where_their_address_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALAKE_VIEWER_URL", raising=False)
    assert pages_of("r") == "`evalake view` shows its pages."
    monkeypatch.setenv("EVALAKE_VIEWER_URL", "http://127.0.0.1:8601/")
    assert pages_of("r") == "[Its pages](http://127.0.0.1:8601/runs/r)"


def test_a_judge_has_a_row_of_its_own(audits: RunContext) -> None:
    rows = headline(audits, find_snapshot(audits.lake, run_id=audits.run_id)["snapshot_id"])
    assert set(JUDGES) <= {row["judge"] for row in rows}


def test_reports_lie_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path))
    assert reports_folder() == tmp_path
    monkeypatch.delenv("EVALAKE_REPORTS")
    monkeypatch.chdir(tmp_path)
    assert reports_folder().parent == tmp_path


def test_a_run_is_complete_though_its_page_cannot_be_written(
    guard: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "file"))  # below a file nothing can be made, by root neither
    snapshot_id = find_snapshot(guard.lake, run_id=guard.run_id)["snapshot_id"]
    run = Run(guard.run_id, "command_guard", "run", {}, {}, [], [], 1, 1, datetime.now(UTC), snapshot_id=snapshot_id)
    assert _report(guard, run) == f"`evalake report {guard.run_id}` writes it"
    assert f"cannot write the report to {tmp_path}/file" in caplog.text
    monkeypatch.setattr("evalake.reports.page.write_page", lambda *_: 1 / 0)  # no page of it can be drawn
    assert _report(guard, run) == f"`evalake report {guard.run_id}` writes it"
    assert "no report: division by zero" in caplog.text


def test_what_a_provider_says_is_no_markup_of_the_summary() -> None:
    run = Run(
        run_id="r",
        suite="command_guard",
        origin="evaluate",
        parameters={},
        dataset_versions={},
        models=["openai/m | ![](http://evil.example/1)"],
        judges=[],
        samples=1,
        items=1,
        started_at=datetime.now(UTC),
        message="1 server (<img src=http://evil.example/2>\n\n![](http://evil.example/3) [log](javascript:x))",
    )
    lines = [line for line in _summary(run, "none").splitlines() if "evil.example" in line]
    assert len(lines) == 2
    cell = lines[0].removeprefix("| models | ").removesuffix(" |")
    assert [re.findall(r"(?<!\\)[\[\]<>!|]", each) for each in (cell, lines[1])] == [[], []]


# The names of Prefect's server that it does not promise to keep are there, and do what we take them for.


def test_the_server_can_be_made() -> None:
    assert callable(TypeAdapter(ImportString).validate_python(SERVER))


def test_a_database_has_the_tables_and_the_kinds_of_blocks(tmp_path: Path) -> None:
    create_database(tmp_path / "new.db")
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        names = {name for (name,) in connection.execute("SELECT slug FROM block_type")}
    assert revision
    assert "secret" in names


def test_times_are_those_of_the_scheduler_up_to_but_not_with_the_end() -> None:
    begin, end = datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)
    assert scheduled_times("0 */8 * * *", "UTC", begin, end, most=10) == [
        datetime(2026, 3, 29, hour, tzinfo=UTC) for hour in (0, 8, 16)
    ]
    assert len(scheduled_times("* * * * *", "UTC", begin, end, most=5)) == 5


def test_a_day_that_puts_its_clocks_forward_keeps_its_local_hour() -> None:
    begin, end = datetime(2026, 3, 28, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)
    hours = [moment.astimezone(UTC).hour for moment in scheduled_times("0 9 * * *", "Europe/Berlin", begin, end, 10)]
    assert hours == [8, 7]


# A Prefect server that is named has to answer; without one, Prefect needs a folder.


def test_one_that_does_not_answer_is_named_without_its_password() -> None:
    nowhere = {PREFECT_API_URL: "http://user:hidden@127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}
    with temporary_settings(nowhere), pytest.raises(ServerError, match="no Prefect server answers at") as refused:
        require_server()
    assert "127.0.0.1:9/api" in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_without_one_the_folder_is_made_or_named(tmp_path: Path) -> None:
    with temporary_settings({PREFECT_API_URL: None, PREFECT_HOME: tmp_path / "home"}):
        require_server()
    assert (tmp_path / "home").is_dir()
    (tmp_path / "file").touch()
    with (
        temporary_settings({PREFECT_API_URL: None, PREFECT_HOME: tmp_path / "file"}),
        pytest.raises(ServerError, match="set PREFECT_HOME to a folder"),
    ):
        require_server()
