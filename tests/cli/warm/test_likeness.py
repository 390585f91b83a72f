"""What makes two processes alike: all that libraries read at import, and nothing that commands read themselves."""

import json
import os
import resource

import pytest

from cli.warm.likeness import likeness


@pytest.mark.parametrize(
    "name",
    ["PREFECT_HOME", "PYTHONWARNINGS", "HTTPS_PROXY", "no_proxy", "POLARS_MAX_THREADS", "EVALAKE_TASK_RUNNER", "LANG"],
)
def test_what_is_read_at_import_makes_a_difference(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = likeness()
    monkeypatch.setenv(name, "another")
    assert likeness() != before


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "PREFECT_API_URL", "EVALAKE_LAKE", "EVALAKE_CONFIG", "COLUMNS", "PWD"]
)
def test_what_is_read_by_a_command_makes_none(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    before = likeness()
    monkeypatch.setenv(name, "another")
    assert likeness() == before


def test_no_key_is_told() -> None:
    assert "KEY" not in "".join(likeness()["environment"])


def test_a_limit_makes_a_difference() -> None:
    before = likeness()
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (1 if soft != 1 else 0, hard))
    try:
        assert likeness() != before
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def test_processors_make_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    before = likeness()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {99})
    assert likeness() != before


def test_it_can_be_told_as_json() -> None:
    assert json.loads(json.dumps(likeness())) == likeness()
