"""What a provider does wrong, over real HTTP through LiteLLM: what it becomes, and how often it is asked again."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import psutil
import pytest

from providers.client import Client
from providers.failures import retry_after_seconds
from providers.request import Failure, Reply
from tests.providers.support import PROVIDERS, QUICK, answer, answers, configuration, request
from tests.servers.model_server import ModelServer

RETRIED = {
    "rate_limit": "rate_limit",
    "server_error": "server",
    "drop": "connection",
    "truncated": "connection",
    "hang": "timeout",
    "slow_drip": "timeout",
    "empty_body": "malformed_response",
    "html": "malformed_response",
    "garbage": "malformed_response",
    "wrong_json": "malformed_response",
    "json_array": "malformed_response",
    "deep_json": "malformed_response",
    "empty_choices": "malformed_response",
    "null_choices": "malformed_response",
    "no_message": "malformed_response",
}
FINAL = {
    "unauthorized": "authentication",
    "forbidden": "authentication",
    "not_found": "not_found",
    "bad_request": "bad_request",
    "context_length": "context_length",
    "content_policy": "content_policy",
    "content_filter_code": "content_policy",
    "no_credit": "authentication",  # which no pause changes
    "payment": "authentication",
}
SLOW = ("hang", "slow_drip")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("fault", "kind"), RETRIED.items())
def test_what_may_pass_is_tried_again_and_then_given_up(
    model_server: ModelServer, provider: str, fault: str, kind: str
) -> None:
    model_server.rule(contains="for ever", faults=[{"kind": fault, "times": 0}])
    limits = configuration(model_server, attempts=3, timeout_seconds=0.2 if fault in SLOW else 20)
    with Client(limits, backoff_seconds=QUICK) as client:
        outcome = answer(client, request("for ever", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts) == (kind, 3)
    assert outcome.message
    assert "Traceback" not in outcome.message
    assert len(model_server.requests("for ever")) == 3


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", RETRIED)
def test_what_passes_ends_in_a_reply(model_server: ModelServer, provider: str, fault: str) -> None:
    model_server.rule(contains="twice", reply="at last", faults=[{"kind": fault, "times": 2}])
    limits = configuration(model_server, attempts=3, timeout_seconds=0.2 if fault in SLOW else 20)
    with Client(limits, backoff_seconds=QUICK) as client:
        answer(client, request("first", f"{provider}/m"))
        outcome = answer(client, request("twice", f"{provider}/m"))
    assert isinstance(outcome, Reply), outcome
    assert (outcome.text, outcome.attempts) == ("at last", 3)
    assert len(model_server.requests("twice")) == 3


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


def test_a_reply_that_is_not_utf_8_is_one_or_is_malformed(model_server: ModelServer) -> None:
    model_server.rule(faults=[{"kind": "invalid_utf8", "times": 0}])
    with Client(configuration(model_server, attempts=1), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("odd", f"{PROVIDERS[0]}/m"))
    assert isinstance(outcome, Failure)
    assert outcome.kind == "malformed_response"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("fault", "kind"), FINAL.items())
def test_what_will_not_change_is_asked_once(model_server: ModelServer, provider: str, fault: str, kind: str) -> None:
    model_server.rule(faults=[{"kind": fault, "times": 0}])
    with Client(configuration(model_server, attempts=5), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("once", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts) == (kind, 1)
    assert len(model_server.seen) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "kind", "attempts"),
    [(408, "timeout", 2), (422, "bad_request", 1), (503, "server", 2), (529, "server", 2), (403, "authentication", 1)],
)
def test_the_status_tells_the_kind(
    model_server: ModelServer, provider: str, status: int, kind: str, attempts: int
) -> None:
    model_server.rule(faults=[{"kind": "server_error", "status": status, "message": "too much " * 1000, "times": 0}])
    with Client(configuration(model_server, attempts=2), backoff_seconds=QUICK) as client:
        outcome = answer(client, request("x", f"{provider}/m"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.attempts) == (kind, attempts)
    assert outcome.message.startswith(f"HTTP {status}: too much too much")
    assert len(outcome.message) <= 500


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_odd_reply_is_still_a_reply(model_server: ModelServer, provider: str) -> None:
    model_server.rule(contains="nothing", faults=[{"kind": "null_content", "times": 0}])
    model_server.rule(contains="filtered", faults=[{"kind": "content_filter", "times": 0}])
    model_server.rule(contains="refused", reply=None, message={"refusal": "I cannot help with that."})
    model_server.rule(contains="cut", reply='{"action": "BLO', finish_reason="length")
    model_server.rule(contains="thought", reply="42", message={"reasoning_content": "let me think"})
    model_server.rule(contains="surrogate", reply="half a \ud83d character \x00")
    model_server.rule(contains="uncounted", usage=None)
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:

        def reply(text: str) -> Reply:
            outcome = answer(client, request(text, f"{provider}/m"))
            assert isinstance(outcome, Reply), outcome
            return outcome

        assert (reply("nothing").text, reply("nothing").finish_reason) == (None, "stop")
        assert (reply("filtered").text, reply("filtered").finish_reason) == (None, "content_filter")
        assert reply("refused").text == "I cannot help with that."
        assert (reply("cut").text, reply("cut").finish_reason) == ('{"action": "BLO', "length")
        assert reply("thought").text == "42"
        assert reply("surrogate").text == "half a ? character \x00"
        plain = reply("plain")
        assert (plain.input_tokens, plain.output_tokens, plain.model_reported) == (20, 5, "m")
        assert (plain.cached_input_tokens, plain.reasoning_tokens, plain.cost_usd) == (None, None, None)
        assert plain.latency_ms is not None
        uncounted = reply("uncounted")
        assert (uncounted.input_tokens, uncounted.output_tokens) == (None, None)


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
    monkeypatch.setattr("providers.attempts.LONGEST_RETRY_AFTER_SECONDS", 0.01)
    model_server.rule(faults=[{"kind": "rate_limit", "retry_after": "60", "times": 1}])
    with Client(configuration(model_server), backoff_seconds=QUICK) as client:
        assert isinstance(answer(client, request("in a minute")), Reply)
    first, second = model_server.seen
    assert first.ended is not None
    assert second.started - first.ended < 60


@pytest.fixture
def far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clocks of this process are Tokyo's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_greenwich")
def test_retry_after_is_read_as_seconds_or_date() -> None:
    now = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
    assert retry_after_seconds("7") == 7.0
    assert retry_after_seconds("0.5") == 0.5
    assert retry_after_seconds(format_datetime(now + timedelta(seconds=90), usegmt=True), now) == 90.0
    assert retry_after_seconds("Sat, 01 Mar 2025 12:01:30 -0000", now) == 90.0  # no zone stated: Greenwich's
    assert retry_after_seconds("Sat, 01 Mar 2025 13:01:30 +0100", now) == 90.0
    assert retry_after_seconds(format_datetime(now - timedelta(hours=1), usegmt=True), now) == 0.0
    assert retry_after_seconds("-3") == 0.0
    endless = f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"
    assert [retry_after_seconds(garbage) for garbage in ("", "soon", "nan", "Mon, 99 Foo 2025", endless)] == [None] * 5
    assert retry_after_seconds(None) is None


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
