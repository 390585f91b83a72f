"""The limits of a provider: how many calls at once, how many a minute, and none while it is down."""

import time

import pytest

from evalake.models.client import Client
from evalake.models.request import Failure, Reply
from tests.integration.models.support import QUICK, answer, answers, configuration, kinds, request
from tests.servers.model_server import ModelServer


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
def test_concurrency_is_used_and_never_exceeded(model_server: ModelServer, provider: str) -> None:
    model_server.rule(latency=0.02)
    with Client(configuration(model_server, concurrency=5)) as client:
        outcomes = answers(client, [request(f"{number}", f"{provider}/m") for number in range(60)])
    assert kinds(outcomes) == {"reply": 60}
    assert model_server.max_in_flight == 5


def test_providers_do_not_share_slots(model_server: ModelServer) -> None:
    model_server.rule(model="stuck", faults=[{"kind": "hang", "times": 0}])
    limits = configuration(model_server, "openai/stuck", "hosted_vllm/m", concurrency=1, attempts=1, timeout_seconds=2)
    with Client(limits, backoff_seconds=QUICK) as client:
        outcomes = answers(client, [request("stuck", "openai/stuck"), request("free", "hosted_vllm/m")])
    stuck = outcomes["stuck"]
    assert isinstance(stuck, Failure)
    assert stuck.kind == "timeout"
    assert list(outcomes) == ["free", "stuck"]


def test_a_call_that_backs_off_holds_no_slot(model_server: ModelServer) -> None:
    model_server.rule(contains="later", faults=[{"kind": "rate_limit", "retry_after": "0.5"}])
    with Client(configuration(model_server, concurrency=1), backoff_seconds=QUICK) as client:
        outcomes = answers(client, [request("later"), *(request(f"{number}") for number in range(5))])
    assert kinds(outcomes) == {"reply": 6}
    assert list(outcomes)[-1] == "later"


def test_requests_per_minute_are_spread(model_server: ModelServer) -> None:
    with Client(configuration(model_server, requests_per_minute=600)) as client:
        before = time.monotonic()
        answers(client, [request(f"{number}") for number in range(13)])
    # 600 a minute are ten a second: ten may start at once, and the last of three more not before 0.3 s have gone by.
    assert model_server.seen[-1].started - before >= 0.3


def test_a_rate_below_one_a_minute_is_no_error(model_server: ModelServer) -> None:
    with Client(configuration(model_server, requests_per_minute=0.5)) as client:
        assert isinstance(answer(client, request("one")), Reply)


def test_the_circuit_opens_when_a_provider_only_fails(model_server: ModelServer) -> None:
    model_server.rule(model="m", faults=[{"kind": "server_error", "times": 0}])
    limits = configuration(model_server, attempts=3, concurrency=4, breaker_failures=5, breaker_seconds=600)
    with Client(limits, backoff_seconds=QUICK) as client:
        outcomes = answers(client, [request(f"{number}") for number in range(100)])
        after = answer(client, request("after"))
    assert kinds(outcomes)["circuit_open"] > 50
    assert isinstance(after, Failure)
    assert (after.kind, after.attempts, after.latency_ms) == ("circuit_open", 0, None)
    assert "hosted_vllm" in after.message
    assert "The server had an error" in after.message
    assert len(model_server.seen) < 250


def test_timeouts_open_the_circuit_without_waiting_for_retries(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "hang", "times": 0}])
    limits = configuration(
        model_server, attempts=5, concurrency=4, timeout_seconds=0.2, breaker_failures=4, breaker_seconds=600
    )
    with Client(limits, backoff_seconds=QUICK) as client:
        outcomes = answers(client, [request(f"{number}") for number in range(40)])
    assert kinds(outcomes) == {"circuit_open": 40}
    assert len(model_server.seen) <= 8


def test_a_hiccup_that_hits_every_call_once_opens_nothing(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "server_error"}])
    limits = configuration(model_server, breaker_failures=2, concurrency=16, breaker_seconds=600)
    with Client(limits, backoff_seconds=QUICK) as client:
        assert kinds(answers(client, [request(f"{number}") for number in range(50)])) == {"reply": 50}


def test_the_circuit_closes_when_the_provider_recovers(model_server: ModelServer) -> None:
    model_server.rule(contains="down", faults=[{"kind": "server_error", "times": 0}])
    limits = configuration(model_server, attempts=1, breaker_failures=3, breaker_seconds=0.2)
    with Client(limits, backoff_seconds=QUICK) as client:
        down = [answer(client, request(f"down {number}")) for number in range(4)]
        assert [outcome.kind for outcome in down if isinstance(outcome, Failure)] == ["server"] * 3 + ["circuit_open"]
        while isinstance(answer(client, request("up")), Failure):
            assert not model_server.requests("up")
        assert isinstance(answer(client, request("up again")), Reply)


@pytest.mark.parametrize("between", ["well", "refused"])
def test_an_answer_between_failures_keeps_the_circuit_closed(model_server: ModelServer, between: str) -> None:
    model_server.rule(contains="down", faults=[{"kind": "server_error", "times": 0}])
    model_server.rule(contains="refused", faults=[{"kind": "bad_request", "times": 0}])
    limits = configuration(model_server, attempts=1, breaker_failures=2, breaker_seconds=600)
    with Client(limits, backoff_seconds=QUICK) as client:
        asked = [answer(client, request(f"{text} {number}")) for number in range(5) for text in ("down", between)]
    assert [outcome.kind for outcome in asked[::2] if isinstance(outcome, Failure)] == ["server"] * 5


def test_one_provider_down_leaves_the_other_alone(model_server: ModelServer) -> None:
    model_server.rule(model="sick", faults=[{"kind": "drop", "times": 0}])
    limits = configuration(
        model_server, "openai/sick", "hosted_vllm/well", attempts=1, breaker_failures=1, breaker_seconds=600
    )
    with Client(limits, backoff_seconds=QUICK) as client:
        sick = answers(client, [request(f"{number}", "openai/sick") for number in range(30)])
        well = answers(client, [request(f"{number}", "hosted_vllm/well") for number in range(30)])
    assert kinds(sick)["circuit_open"] > 0
    assert kinds(well) == {"reply": 30}
