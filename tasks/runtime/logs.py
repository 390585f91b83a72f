"""Logs without keys, in Prefect's UI too; with EVALAKE_LOG_FORMAT=json as JSON lines with run, batch and model.

Every record of the process is redacted at its creation, for all handlers: terminal, file, Prefect's server.
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
SAYS_ALL = "evalake_error"  # the attribute of domain errors' records, which have no traceback

OVER = "RunOverError"
"""Stands in what Prefect logs, as errors, of tasks whose run somebody has cancelled or suspended."""

_PREFECT_FIELDS = ("flow_run_id", "flow_run_name", "task_run_id", "task_run_name")

_make = logging.getLogRecordFactory()
_run_ids: dict[str, str] = {}  # by flow run: the newest KNOWN_RUNS, because a record may follow its run
KNOWN_RUNS = 1000


def redact_logs() -> None:
    """Redact every log record from now on; can be repeated."""
    if logging.getLogRecordFactory() is not _redacted:
        logging.setLogRecordFactory(_redacted)
    if as_json():
        _write_json()


def as_json() -> bool:
    """Tell whether logs are JSON lines. Raises ConfigurationError for an unknown format."""
    wanted = os.environ.get(SWITCH, "")
    if wanted not in ("", "json"):
        raise ConfigurationError(f"{SWITCH} must be json or unset, not {wanted}")
    return wanted == "json"


@contextmanager
def observed(name: str, flow_run_id: str, run_id: str, suite: str) -> Iterator[None]:
    """Log and trace a flow run during the block, and send its telemetry at the end."""
    redact_logs()
    _run_ids[flow_run_id] = run_id
    if len(_run_ids) > KNOWN_RUNS:
        del _run_ids[next(iter(_run_ids))]
    try:
        with telemetry.scope(name, run_id=run_id, suite=suite):
            yield
    finally:
        telemetry.flush()


def _redacted(*arguments: Any, **named: Any) -> logging.LogRecord:
    record = _make(*arguments, **named)
    if record.exc_info and isinstance(record.exc_info[1], EvalakeError):
        record.exc_info = None  # its text is enough
        record.__dict__[SAYS_ALL] = True
    if record.name == "prefect.task_runs" and OVER in str(record.msg):
        record.levelno, record.levelname = logging.INFO, "INFO"
    redact_record(record)
    return record


def _write_json() -> None:
    """Replace the handlers that write text to the terminal by one at the root; log evalake's records from INFO on."""
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
    logging.captureWarnings(True)
    logging.getLogger("evalake").setLevel(logging.INFO)


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON, with other values as text."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record without a line end."""
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
    """Find run, batch and model, and Prefect's fields, whose own records come from outside the task.

    Not attributes of the record, because LiteLLM converts those to text.
    """
    fields = {name: str(value) for name in _PREFECT_FIELDS if (value := getattr(record, name, None)) is not None}
    if (run_id := _run_ids.get(fields.get("flow_run_id", ""))) is not None:
        fields["run_id"] = run_id
    if getattr(record, "task_name", None) in ("call-batch", "call-judge"):
        fields["batch"] = fields["task_run_name"]
        fields["model"] = fields["batch"].rpartition(" #")[0].removeprefix("judge ")
    return {**fields, **telemetry.current_fields()}


_handler = logging.StreamHandler(sys.stderr)
_handler.setFormatter(JsonLines())


_LOUD = "evalake.calls"  # one record for each failed call, which the record of a batch sums up


def show_in_prefect() -> None:
    """Send evalake's records inside a flow run to its log in Prefect; can be repeated."""
    from prefect.logging.handlers import APILogHandler

    own = logging.getLogger("evalake")
    if any(isinstance(handler, APILogHandler) for handler in own.handlers):
        return
    handler = APILogHandler()
    handler.addFilter(_belongs_to_a_run)
    own.addHandler(handler)
    own.setLevel(logging.INFO)
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        # A domain error that ends a run is in its state, which Prefect logs next
        logging.getLogger(name).addFilter(
            lambda record: record.levelno < logging.ERROR or not hasattr(record, SAYS_ALL)
        )


def _belongs_to_a_run(record: logging.LogRecord) -> bool:
    from prefect.context import FlowRunContext, TaskRunContext

    return record.name != _LOUD and bool(FlowRunContext.get() or TaskRunContext.get())
