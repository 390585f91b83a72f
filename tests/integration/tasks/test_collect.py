"""How a run has ended: by what was answered, what was given up on, and what its ceiling left out."""

from pathlib import Path
from typing import Any

import pytest

from evalake.contracts.tables import CALL_FAILURES
from evalake.core.configuration import Configuration
from evalake.models.request import Failure
from evalake.sdk import Exchange, Item
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.tasks.collect import Collector
from evalake.tasks.converse import Conversation
from evalake.tasks.runtime.context import RunContext

(SAMPLE, *_) = suite("command_guard").data.read("starter").samples


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    nobody: Any = None  # publishes, for there are no rows
    return Collector(RunContext("run", "command_guard", Lake(str(tmp_path / "lake")), Configuration()), nobody)


def ended(kind: Any) -> Conversation:
    exchange = Exchange("a" * 64, Failure(kind, "too late", 3))
    return Conversation(Item(SAMPLE, "a/model", None, "direct", 0), "a" * 64, [exchange], is_listed=True)


def test_a_run_with_nothing_left_is_complete(collector: Collector) -> None:
    collector.finish()
    assert (collector.state, collector.message, collector.tally.rows_landed) == ("completed", None, 0)


def test_a_call_that_was_given_up_on_is_counted_and_kept(collector: Collector, tmp_path: Path) -> None:
    collector.add([ended("timeout")])
    assert collector.tally.calls_failed == 1
    assert Lake(str(tmp_path / "lake")).frame(CALL_FAILURES).collect()["kind"].to_list() == ["timeout"]


def test_what_a_ceiling_left_out_is_incomplete_and_no_failure(collector: Collector) -> None:
    collector.add([ended("budget")])
    collector.finish()
    assert collector.state == "incomplete"
    assert collector.tally.calls_failed == 0
    assert "1 items were not asked: raise it and retry" in str(collector.message)
