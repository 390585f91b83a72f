"""A baseline is called like any other model, without a network, a price or a latency."""

import subprocess
import sys
from typing import Any

from evalake.core.configuration import Configuration
from evalake.models.client import Client
from evalake.models.request import BaselineRefusedError, Failure, Messages, Reply, Revised, revision_of
from tests.integration.models.support import answer, request


def parrot(messages: Messages) -> str:
    if not messages[-1]["content"]:
        raise BaselineRefusedError("there is nothing to repeat")
    return messages[-1]["content"]


def test_a_baseline_answers_at_no_cost_and_states_no_latency() -> None:
    with Client(Configuration(), baselines={"parrot": parrot}) as client:
        reply = answer(client, request("hello", "baseline/parrot", temperature=0.0))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.cost_usd, reply.latency_ms) == ("hello", 0.0, None)
    assert reply.model_reported == "baseline/parrot"


def test_what_a_baseline_refuses_is_a_failure_in_its_words() -> None:
    with Client(Configuration(), baselines={"parrot": parrot}) as client:
        outcome = answer(client, request("", "baseline/parrot"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts, outcome.message) == ("bad_request", 1, "there is nothing to repeat")


def test_a_baseline_needs_no_library_of_providers() -> None:
    program = """
import sys
from evalake.core.configuration import Configuration
from evalake.models.client import Client
from tests.integration.models.support import answer, request
with Client(Configuration(), baselines={"parrot": lambda messages: messages[-1]["content"]}) as client:
    assert answer(client, request("hello", "baseline/parrot")).text == "hello"
assert "litellm" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_revised_baseline_answers_under_its_name_and_tells_its_revision() -> None:
    known: dict[str, Any] = {"parrot": Revised(parrot, "2"), "first": parrot}
    with Client(Configuration(), baselines=known) as client:
        reply = answer(client, request("hello", "baseline/parrot"))
    assert isinstance(reply, Reply)
    assert reply.text == "hello"
    assert revision_of("baseline/parrot", known) == "2"
    assert [revision_of(name, known) for name in ("baseline/first", "baseline/none", "parrot")] == [None] * 3
