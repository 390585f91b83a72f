"""Lines of a run reach its log in Prefect, once each."""

import logging

import pytest
from prefect.logging.handlers import APILogHandler

from evalake.tasks.runtime.logs import show_in_prefect

OWN = logging.getLogger("evalake")


@pytest.fixture(autouse=True)
def handlers_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWN, "handlers", [each for each in OWN.handlers if not isinstance(each, APILogHandler)])
    for name in ("prefect.flow_runs", "prefect.task_runs"):
        monkeypatch.setattr(logging.getLogger(name), "filters", [])


def test_it_is_set_up_once_and_takes_nothing_outside_a_run() -> None:
    show_in_prefect()
    show_in_prefect()
    (handler,) = [each for each in OWN.handlers if isinstance(each, APILogHandler)]
    line = logging.LogRecord("evalake.runs", logging.INFO, __file__, 1, "outside", None, None)
    assert not handler.filter(line)
