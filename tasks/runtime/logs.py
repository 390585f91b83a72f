"""Logs without keys, and as JSON lines where EVALAKE_LOG_FORMAT=json: one object a line, with run, batch and model.

Every record of the process is redacted as it is made, whoever makes it and wherever it goes: terminal, file, or
Prefect's server.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from evalake.core.errors import ConfigurationError, EvalakeError
from evalake.core.redaction import redact_record
from evalake.models import telemetry

SWITCH = "EVALAKE_LOG_FORMAT"
SAYS_ALL = "evalake_error"  # the attribute of records of domain errors, which have no traceback

_PREFECT_FIELDS = ("flow_run_id", "flow_run_name", "task_run_id", "task_run_name")

_make = logging.getLogRecordFactory()
_run_ids: dict[str, str] = {}  # by flow run: the newest KNOWN_RUNS, for a record may come after its run
KNOWN_RUNS = 1000


def redact_logs() -> None:
    """Redact every log record from now on; repeating it changes nothing."""
    if logging.getLogRecordFactory() is not _redacted:
        logging.setLogRecordFactory(_redacted)
    if as_json():
        _write_json()


def as_json() -> bool:
    """Tell whether logs are JSON lines. Raises ConfigurationError where something else is asked for."""
    wanted = os.environ.get(SWITCH, "")
    if wanted not in ("", "json"):
        raise ConfigurationError(f"{SWITCH} is json, or not set: not {wanted}")
    return wanted == "json"


@contextmanager
def observed(name: str, flow_run_id: str, run_id: str, suite: str, parent: str | None = None) -> Iterator[None]:
    """Log and trace a flow run of a run while the block runs; what was measured has been sent when it ends.

    `parent` is the run's own trace, where this is a part of it in another process.
    """
    redact_logs()
    _run_ids[flow_run_id] = run_id
    if len(_run_ids) > KNOWN_RUNS:
        del _run_ids[next(iter(_run_ids))]
    try:
        with telemetry.scope(name, parent=parent, run_id=run_id, suite=suite):
            yield
    finally:
        telemetry.flush()


def _redacted(*arguments: Any, **named: Any) -> logging.LogRecord:
    record = _make(*arguments, **named)
    if record.exc_info and isinstance(record.exc_info[1], EvalakeError):
        record.exc_info = None  # its text says what a person needs
        record.__dict__[SAYS_ALL] = True
    redact_record(record)
    return record


def _write_json() -> None:
    """Put one handler at the root, and none that writes text to the terminal; log evalake's records from INFO on."""
    root = logging.getLogger()
    terminal = (sys.stderr, sys.stdout, sys.__stderr__, sys.__stdout__)
    others = [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)]
    for logger in (root, *others):
        for handler in list(logger.handlers):
            if isinstance(handler, logging.StreamHandler) and handler.stream in terminal:
                if isinstance(handler.formatter, JsonLines):
                    continue
                logger.removeHandler(handler)
                logger.addHandler(_handler)
    if _handler not in root.handlers:
        root.addHandler(_handler)
    logging.captureWarnings(True)  # which Python would write as text
    logging.getLogger("evalake").setLevel(logging.INFO)


class JsonLines(logging.Formatter):
    """A record as one line of JSON; what has no JSON form is written as text."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record as a line, without its end."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_place_of(record),
        }
        if record.exc_text:
            line["traceback"] = record.exc_text
        elif record.exc_info and record.exc_info[0] is not None:
            line["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line, default=str)


def _place_of(record: logging.LogRecord) -> dict[str, str]:
    """Find run, batch and model, and what Prefect knows. Its own records are made around the task, not inside it.

    This is done as the line is written, for LiteLLM makes text of the attributes of a record.
    """
    fields = {name: str(value) for name in _PREFECT_FIELDS if (value := getattr(record, name, None)) is not None}
    if (run_id := _run_ids.get(fields.get("flow_run_id", ""))) is not None:
        fields["run_id"] = run_id
    if getattr(record, "task_name", None) == "call-batch":
        fields["batch"] = fields["task_run_name"]
        fields["model"] = fields["batch"].rpartition(" #")[0]
    return {**fields, **telemetry.place()}


_handler = logging.StreamHandler(sys.stderr)
_handler.setFormatter(JsonLines())


# The log of a flow run in the Prefect UI: evalake's own records reach it, and a failure is told once, in words.


_LOUD = "evalake.calls"  # one record a failed call: what is said of a batch sums them up


def show_in_prefect() -> None:
    """Show what evalake logs inside a flow run in that run's log, from now on; repeating it changes nothing."""
    from prefect.logging.handlers import APILogHandler

    own = logging.getLogger("evalake")
    if any(isinstance(handler, APILogHandler) for handler in own.handlers):
        return
    handler = APILogHandler()
    handler.addFilter(_belongs_to_a_run)
    own.addHandler(handler)
    own.setLevel(logging.INFO)
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        logging.getLogger(name).addFilter(_tell_once)


def _belongs_to_a_run(record: logging.LogRecord) -> bool:
    from prefect.context import FlowRunContext, TaskRunContext

    return record.name != _LOUD and bool(FlowRunContext.get() or TaskRunContext.get())


def _tell_once(record: logging.LogRecord) -> bool:
    """Leave out the record of a domain error that ended a run, for its state says the same in the next line."""
    return record.levelno < logging.ERROR or not hasattr(record, SAYS_ALL)
