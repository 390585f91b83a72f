"""The log of a flow run in the Prefect UI: evalake's own records reach it, and a failure is told once, in words.

Prefect sends its own loggers' records to its server, and no others unless they are named in its settings. It logs an
exception with its traceback, and then the state that it ended in, with the same words.
"""

import logging

from tasks.runtime.logs import SAYS_ALL

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
