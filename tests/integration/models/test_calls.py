"""Calls: attempts, rates and the transport under them."""

import asyncio
import json
import time
from typing import Any

import psutil
import pytest

from evalake.models.client import Client
from evalake.models.direct import Answer, Asked, Timing, Transport
from evalake.models.request import Failure, Reply
from tests.cases import cases_beside
from tests.integration.models.support import PROVIDERS, QUICK, answer, answers, configuration, kinds, request
from tests.servers.model_server import ModelServer
from tests.servers.recorder import recorder

CASES = cases_beside(__file__, "faults.json")

# What a provider does wrong, over real HTTP through LiteLLM: what it becomes, and how often it is asked again.

RETRIED = CASES["retried"]
SLOW = ("hang", "slow_drip")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("fault", "kind"), RETRIED.items())
def test_what_may_pass_is_tried_again_until_it_passes_or_is_given_up(
    model_server: ModelServer, provider: str, fault: str, kind: str
) -> None:
    model_server.rule(contains="for ever", faults=[{"kind": fault, "times": 0}])
    model_server.rule(contains="twice", reply="at last", faults=[{"kind": fault, "times": 2}])
    soon, later = (0.2, 4) if fault in SLOW else (20, 20)  # what no reply comes in, and what a busy machine replies in
    with Client(configuration(model_server, attempts=3, timeout_seconds=soon), backoff_seconds=QUICK) as client:
        answer(client, request("first", f"{provider}/m"))
        given_up = answer(client, request("for ever", f"{provider}/m"))
    with Client(configuration(model_server, attempts=3, timeout_seconds=later), backoff_seconds=QUICK) as client:
        passed = answer(client, request("twice", f"{provider}/m"))
    assert isinstance(given_up, Failure)
    assert (given_up.kind, given_up.attempts) == (kind, 3)
    assert given_up.message
    assert "Traceback" not in given_up.message
    assert isinstance(passed, Reply), passed
    assert (passed.text, passed.attempts) == ("at last", 3)
    assert [len(model_server.requests(text)) for text in ("for ever", "twice")] == [3, 3]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_request_reaches_the_provider_whole(model_server: ModelServer, provider: str) -> None:
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        answer(client, request("ünï", f"{provider}/m", temperature=0.25, max_tokens=7, seed=3))
    body = model_server.seen[0].body
    assert body["messages"] == [{"role": "user", "content": "ünï"}]
    assert (body["model"], body["temperature"], body["max_tokens"], body["seed"]) == ("m", 0.25, 7, 3)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_retry_after_is_honoured(model_server: ModelServer, provider: str) -> None:
    model_server.rule(faults=[{"kind": "rate_limit", "retry_after": "0.3", "times": 2}])
    with Client(configuration(model_server, attempts=3), backoff_seconds=QUICK) as client:
        assert isinstance(answer(client, request("wait", f"{provider}/m")), Reply)
    first, second, third = model_server.seen
    assert first.ended is not None
    assert second.ended is not None
    assert second.started - first.ended >= 0.3
    assert third.started - second.ended >= 0.3


def test_retry_after_has_a_longest_pause(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalake.models.attempts.LONGEST_RETRY_AFTER_SECONDS", 0.01)
    model_server.rule(faults=[{"kind": "rate_limit", "retry_after": "60", "times": 1}])
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        assert isinstance(answer(client, request("in a minute")), Reply)
    first, second = model_server.seen
    assert first.ended is not None
    assert second.started - first.ended < 60


def test_a_refused_key_stops_that_model_and_no_other(model_server: ModelServer) -> None:
    model_server.rule(model="locked", faults=[{"kind": "unauthorized", "times": 0}])
    models = ("hosted_vllm/locked", "hosted_vllm/open")
    with Client(configuration(model_server, *models), backoff_seconds=QUICK) as client:
        first = answer(client, request("1", "hosted_vllm/locked"))
        later = answer(client, request("2", "hosted_vllm/locked"))
        other = answer(client, request("3", "hosted_vllm/open"))
    assert isinstance(first, Failure)
    assert first.kind == "authentication"
    assert isinstance(later, Failure)
    assert (later.kind, later.attempts) == ("model_stopped", 0)
    assert "Incorrect API key provided" in later.message
    assert isinstance(other, Reply)
    assert len(model_server.requests(model="locked")) == 1


def test_calls_that_wait_for_their_turn_see_that_the_model_was_stopped(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "unauthorized", "times": 0}])
    with Client(configuration(model_server, requests_per_minute=60), backoff_seconds=QUICK) as client:
        outcomes = answers(client, [request(f"{number}") for number in range(40)])
    kinds = [outcome.kind for outcome in outcomes.values() if isinstance(outcome, Failure)]
    assert len(kinds) == 40
    assert len(model_server.seen) == kinds.count("authentication") <= 3


def test_a_model_that_does_not_exist_is_stopped_too(model_server: ModelServer) -> None:
    model_server.rule(model="m", faults=[{"kind": "not_found", "times": 0}])
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        kinds = [getattr(answer(client, request(text)), "kind", None) for text in "abc"]
    assert kinds == ["not_found", "model_stopped", "model_stopped"]
    assert len(model_server.seen) == 1


# The limits of a provider: how many calls at once, how many a minute, and none while it is down.


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


# What goes over the pool of connections, and what is not read from it.


@pytest.mark.parametrize(
    "fault", [{"kind": "huge"}, {"kind": "gzip_bomb", "megabytes": 50}], ids=["reply of 50 MB", "gzip bomb"]
)
def test_replies_larger_than_any_model_writes_are_cut_off_and_not_kept(
    model_server: ModelServer, fault: dict[str, object]
) -> None:
    model_server.rule(faults=[{**fault, "times": 0}])
    with Client(configuration(model_server, attempts=1, concurrency=1), backoff_seconds=QUICK) as client:
        answer(client, request("first", f"{PROVIDERS[0]}/m"))
        before = psutil.Process().memory_info().rss
        outcomes = answers(client, [request(f"large {number}", f"{PROVIDERS[0]}/m") for number in range(8)])
    said = {(outcome.kind, outcome.message) for outcome in outcomes.values() if isinstance(outcome, Failure)}
    assert said == {("malformed_response", "the reply is larger than 33,554,432 bytes")}
    assert psutil.Process().memory_info().rss - before < 4 * 32 * 2**20


async def _post(address: str, path: str = "/v1", **more: Any) -> tuple[Answer, Timing]:
    transport, timing = Transport(), Timing()
    try:
        return await transport.post(Asked(f"{address}{path}", {"X-Key": "k"}, b"{}"), timing, **more), timing
    finally:
        await transport.close()


def test_what_was_sent_when_is_measured_and_what_came_is_told() -> None:
    heard: list[int] = []
    with recorder() as server:
        server.answer({"said": "so"})
        answered, timing = asyncio.run(_post(server.address, on_data=lambda: heard.append(1)))
    assert (answered.status, json.loads(answered.body)) == (200, {"said": "so"})
    assert server.sent[0].headers["x-key"] == "k"
    assert timing.started <= timing.connected <= timing.sent <= timing.first_byte <= timing.ended
    assert heard


def test_what_has_not_happened_took_no_known_time() -> None:
    assert (Timing().connect_ms, Timing().first_byte_ms, Timing().latency_ms) == (None, None, None)
