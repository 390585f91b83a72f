"""A flow run is named for what it does, unless somebody named it; its day, and who started it."""

from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.utilities.names import generate_slug

from evalake.tasks.runtime import form
from evalake.tasks.runtime.form import day_of_run, evaluate_run_name, is_generated, started_by


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"suite": "quiz"}, "quiz: baselines, 2026-03-01"),
        ({"suite": "quiz", "models": "a/one", "day": "2026-02-28"}, "quiz: a/one, 2026-02-28"),
        (
            {"suite": "quiz", "models": ["one", "two", "three", "four", "five"]},
            "quiz: one, two, three and 2 more, 2026-03-01",
        ),
    ],
)
def test_suite_models_and_day(parameters: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    due = datetime(2026, 3, 1, 8, tzinfo=UTC)
    monkeypatch.setattr(
        form, "flow_run", SimpleNamespace(name=generate_slug(2), parameters=parameters, scheduled_start_time=due)
    )
    monkeypatch.setattr(form, "SHOWN_MODELS", 3)
    assert evaluate_run_name() == name


@pytest.mark.parametrize("name", ["night check", "night-check", "before the release", "brave", "command_guard: a/one"])
def test_a_name_that_somebody_gave_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "flow_run", SimpleNamespace(name=name, parameters={}))
    assert evaluate_run_name() == name


def test_names_that_prefect_makes_up_are_told_from_others() -> None:
    assert all(is_generated(generate_slug(2)) for _ in range(200))


def test_a_run_that_is_made_up_is_of_the_day_that_it_names() -> None:
    assert day_of_run(date(2026, 1, 2)) == date(2026, 1, 2)


def test_any_other_is_of_the_day_on_which_it_is_due() -> None:
    before = datetime.now(UTC).date()
    assert before <= day_of_run() <= datetime.now(UTC).date()


def test_where_the_server_is_away_nobody_knows() -> None:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}):
        assert started_by(str(uuid4()), 1) is None
