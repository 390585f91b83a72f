"""Logs without keys: what Prefect's loggers print or send to its server is redacted first."""

import logging

from providers.redaction import RedactionFilter

LOGGERS = ("prefect", "prefect.flow_runs", "prefect.task_runs", "evalake")

_filter = RedactionFilter()


def redact_logs() -> None:
    """Put the redaction on every handler of the loggers of runs; repeating it changes nothing."""
    for name in LOGGERS:
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(_filter)
