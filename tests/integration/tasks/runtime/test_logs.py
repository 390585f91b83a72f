"""Log records: redacted as they are made, for every handler; as JSON, one whole line each, whatever they hold."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from logging.handlers import BufferingHandler
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.errors import ConfigurationError
from evalake.models.litellm_internals import load
from evalake.models.telemetry import scope
from evalake.tasks.runtime.logs import JsonLines, redact_logs
from evalake.tasks.runtime.resources import RunOverError

KEY = "neither-looks-like-one-2718"


@pytest.fixture(autouse=True)
def _factory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = logging.getLogRecordFactory()
    monkeypatch.setenv("SOMEONES_API_KEY", KEY)
    redact_logs()
    yield
    logging.setLogRecordFactory(before)


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger of a library that knows nothing of evalake, with a handler of its own."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("somebody.elses")
    logger.addHandler(handler)
    logger.propagate = False
    yield logger, stream
    logger.removeHandler(handler)


Log = tuple[logging.Logger, io.StringIO]


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_no_handler_sees_a_key(log: Log) -> None:
    logger, stream = log
    plain = io.StringIO()
    handler = logging.StreamHandler(plain)
    logger.addHandler(handler)
    try:
        raise RuntimeError(f"asked with {KEY}")
    except RuntimeError:
        logger.exception("a call with %s and %r", KEY, {"authorization": "Bearer abcdefgh12345"})
    finally:
        logger.removeHandler(handler)
    (line,) = lines(stream)
    assert line["message"] == "a call with [redacted] and {'authorization': 'Bearer [redacted]'}"
    assert "RuntimeError: asked with [redacted]" in line["traceback"]
    assert "RuntimeError: asked with [redacted]" in plain.getvalue()
    assert KEY not in stream.getvalue() + plain.getvalue()


def test_a_line_says_where_it_belongs(log: Log) -> None:
    logger, stream = log
    with scope("run", run_id="r1", suite="command_guard"):
        logger.warning("first")
        with scope("batch", batch="m #1", model="m"):
            logger.warning("second", extra={"model": "an attribute of another library", "batch": 3})
    logger.warning("third")
    first, second, third = lines(stream)
    assert (first["run_id"], first["suite"], "batch" in first) == ("r1", "command_guard", False)
    assert (second["run_id"], second["batch"], second["model"]) == ("r1", "m #1", "m")
    assert third.keys() == {"time", "level", "logger", "message"}


def test_a_record_that_another_library_rewrites_is_a_line(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    load()  # LiteLLM makes text of all that records of these loggers carry
    _, stream = log
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("uvicorn.error")
    monkeypatch.setattr(logger, "disabled", False)  # as a server that another test ran may have left it
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.addHandler(handler)
    try:
        logger.warning("nowhere", extra={"size": {"rows": 3}})
        with scope("run", run_id="r1"):
            logger.warning("in a run")
    finally:
        logger.removeHandler(handler)
    first, second = lines(stream)
    assert (first["message"], second["run_id"]) == ("nowhere", "r1")


class Unsaid:
    """Something that cannot be made text."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("message", "arguments", "written"),
    [("%d of " + KEY, ("three",), "%d of [redacted]"), ("%s %s", (1,), "%s %s"), (Unsaid(), (), "Unsaid")],
)
def test_a_wrong_line_of_a_library_fails_nobody(
    log: Log, message: object, arguments: tuple[object, ...], written: str
) -> None:
    logger, stream = log
    logger.warning(message, *arguments)
    assert lines(stream)[0]["message"].startswith(f"{written} (not written out: ")


@given(st.text())
def test_a_record_is_one_line_of_json(text: str) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    handler.handle(logging.LogRecord("x", logging.INFO, "x", 1, "%s", (text,), None))
    (line,) = stream.getvalue().split("\n")[:-1]
    assert json.loads(line)["message"] == text
    assert line.isascii()


def test_a_warning_is_a_line_too() -> None:
    code = (
        "import warnings; from evalake.tasks.runtime.logs import redact_logs; redact_logs(); "
        "warnings.warn('of\\ntwo lines')"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env={**os.environ, "EVALAKE_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = map(json.loads, done.stderr.splitlines())
    assert line["level"] == "WARNING"
    assert "UserWarning: of\ntwo lines" in line["message"]


def test_a_copy_of_a_process_has_other_streams_than_what_its_handlers_write_to() -> None:
    code = """
import logging, sys
from evalake.tasks.runtime.logs import redact_logs
library = logging.getLogger("library")
library.propagate = False
library.addHandler(logging.StreamHandler())
sys.stderr = open(2, "w", closefd=False)
redact_logs()
library.warning("of before")
"""
    environment = {**os.environ, "EVALAKE_LOG_FORMAT": "json"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (line["logger"], line["message"]) == ("library", "of before")


def test_a_format_that_there_is_not_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALAKE_LOG_FORMAT", "xml")
    with pytest.raises(ConfigurationError, match="EVALAKE_LOG_FORMAT must be json or unset, not xml"):
        redact_logs()


def test_doing_it_again_changes_nothing() -> None:
    factory = logging.getLogRecordFactory()
    redact_logs()
    assert logging.getLogRecordFactory() is factory


def test_the_end_of_a_cancelled_run_is_no_error_of_its_tasks() -> None:
    over = RunOverError("the run r was stopped: 3 of 10 items are left for later")
    kept = BufferingHandler(10)
    prefect = logging.getLogger("prefect.task_runs")
    prefect.addHandler(kept)
    try:
        for said in (
            f"Task run failed with exception: {over!r}",
            f"Finished in state Failed('Task run encountered an exception {type(over).__name__}: {over}')",
            "Task run failed with exception: LakeError('the lake is gone')",
        ):
            prefect.error(said, extra={"send_to_api": False})  # there is no run here
    finally:
        prefect.removeHandler(kept)
    assert [record.levelname for record in kept.buffer] == ["INFO", "INFO", "ERROR"]
