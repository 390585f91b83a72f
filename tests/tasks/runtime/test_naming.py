"""A flow run is named for what it does, unless somebody named it."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from prefect.utilities.names import generate_slug

from tasks.runtime import naming
from tasks.runtime.naming import evaluate_run_name, is_generated


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
        naming, "flow_run", SimpleNamespace(name=generate_slug(2), parameters=parameters, scheduled_start_time=due)
    )
    monkeypatch.setattr(naming, "SHOWN_MODELS", 3)
    assert evaluate_run_name() == name


@pytest.mark.parametrize("name", ["night check", "night-check", "before the release", "brave", "command_guard: a/one"])
def test_a_name_that_somebody_gave_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "flow_run", SimpleNamespace(name=name, parameters={}))
    assert evaluate_run_name() == name


def test_names_that_prefect_makes_up_are_told_from_others() -> None:
    assert all(is_generated(generate_slug(2)) for _ in range(200))
