"""Answers that come in pieces: bought once however long they take, cut off in silence, and never taken for whole."""

import time

import pytest

from evalake.core.configuration import Configuration
from evalake.models import streams
from evalake.models.attempts import Outcome
from evalake.models.client import Client
from evalake.models.request import Failure, Reply, Request
from evalake.models.streams import read_events
from tests.integration.models.support import PROVIDERS, QUICK, answer, configuration
from tests.servers.model_server import ModelServer


@pytest.fixture(params=PROVIDERS)
def model(request: pytest.FixtureRequest) -> str:
    return f"{request.param}/m"


def ask(limits: Configuration, model: str, stream: bool = True) -> Outcome:
    """The outcome of a call by a client that has called before, which takes time."""
    messages = ({"role": "system", "content": "You judge."}, {"role": "user", "content": "judge this"})
    with Client(limits, backoff_seconds=QUICK) as client:
        answer(client, Request(model, ({"role": "user", "content": "first"},), {}, stream=True))
        return answer(client, Request(model, messages, {}, stream=stream))


def failed(outcome: Outcome) -> tuple[str, int]:
    """Its kind and the attempts."""
    assert isinstance(outcome, Failure), outcome
    return outcome.kind, outcome.attempts


def test_it_is_asked_for_and_read_as_an_answer_at_once(model_server: ModelServer, model: str) -> None:
    model_server.rule(contains="judge", reply="it is vulnerable, and this is why: …")
    limits = configuration(model_server)
    streamed, at_once = ask(limits, model), ask(limits, model, stream=False)
    bodies = [seen.body for seen in model_server.requests("judge")]
    assert bodies[0] == {**bodies[1], "stream": True, "stream_options": {"include_usage": True}}
    assert isinstance(streamed, Reply)
    assert isinstance(at_once, Reply)
    assert streamed.text == at_once.text == "it is vulnerable, and this is why: …"
    assert (streamed.finish_reason, streamed.input_tokens, streamed.output_tokens) == ("stop", 20, 5)
    assert streamed.cost_usd == at_once.cost_usd


def test_how_it_comes_is_no_part_of_what_was_asked() -> None:
    request = Request("openai/m", ({"role": "user", "content": "x"},), {"temperature": 0})
    streamed = Request("openai/m", ({"role": "user", "content": "x"},), {"temperature": 0}, stream=True)
    assert streamed.canonical == request.canonical
    assert streamed.prompt_hash == request.prompt_hash


def test_an_answer_that_is_never_silent_for_long_is_bought_once(model_server: ModelServer, model: str) -> None:
    model_server.rule(contains="judge", reply="a long, long answer", pieces=8, pause=0.2)
    outcome = ask(configuration(model_server, timeout_seconds=1, attempts=3), model)
    assert isinstance(outcome, Reply), outcome
    assert (outcome.text, outcome.attempts) == ("a long, long answer", 1)
    assert len(model_server.requests("judge")) == 1
    assert outcome.latency_ms is not None
    assert outcome.first_byte_ms is not None
    assert outcome.latency_ms > 1000
    assert 200 <= outcome.first_byte_ms < outcome.latency_ms - 1000


def test_the_same_answer_at_once_has_only_so_long(model_server: ModelServer, model: str) -> None:
    model_server.rule(contains="judge", latency=3)
    limits = configuration(model_server, timeout_seconds=1, attempts=1)
    assert failed(ask(limits, model, stream=False)) == ("timeout", 1)


@pytest.mark.parametrize("fault", ["hang", "stream_silent"])
def test_silence_is_a_timeout(model_server: ModelServer, model: str, fault: str) -> None:
    model_server.rule(contains="judge", faults=[{"kind": fault, "times": 0}])
    outcome = ask(configuration(model_server, timeout_seconds=0.5, attempts=2), model)
    assert failed(outcome) == ("timeout", 2)
    assert isinstance(outcome, Failure)
    assert outcome.message == "no data for 0.5 seconds"


@pytest.mark.parametrize("fault", ["stream_endless", "slow_drip"])
def test_what_drips_without_end_is_a_timeout(
    model_server: ModelServer, model: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LONGEST", 2)
    model_server.rule(contains="judge", faults=[{"kind": fault, "times": 0}])
    begun = time.monotonic()
    outcome = ask(configuration(model_server, timeout_seconds=0.5, attempts=1), model)
    assert failed(outcome) == ("timeout", 1)
    assert time.monotonic() - begun < 20


def test_more_pieces_than_a_model_writes_are_no_reply(
    model_server: ModelServer, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MOST_PIECES", 100)
    model_server.rule(contains="judge", reply="x" * 200, pieces=200)
    assert failed(ask(configuration(model_server, attempts=1), model)) == ("malformed_response", 1)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"kind": "stream_cut"}, "connection"),
        ({"kind": "stream_ended"}, "connection"),
        ({"kind": "stream_error"}, "server"),
        ({"kind": "drop"}, "connection"),
        ({"kind": "html"}, "malformed_response"),
        ({"kind": "rate_limit"}, "rate_limit"),
        ({"kind": "server_error"}, "server"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else value,
)
def test_what_breaks_off_is_tried_again_and_never_taken_for_whole(
    model_server: ModelServer, model: str, fault: dict[str, object], kind: str
) -> None:
    model_server.rule(contains="judge", reply="SAFE, or is it?", faults=[{**fault, "times": 2}])
    again = ask(configuration(model_server, attempts=3), model)
    assert isinstance(again, Reply), again
    assert (again.text, again.attempts) == ("SAFE, or is it?", 3)
    model_server.reset()
    assert failed(ask(configuration(model_server, attempts=2), model)) == (kind, 2)


@pytest.mark.parametrize(("fault", "kind"), [("unauthorized", "authentication"), ("context_length", "context_length")])
def test_what_is_refused_is_refused_once(model_server: ModelServer, model: str, fault: str, kind: str) -> None:
    model_server.rule(contains="judge", faults=[{"kind": fault, "times": 0}])
    assert failed(ask(configuration(model_server, attempts=3), model)) == (kind, 1)


def test_what_is_odd_but_whole_is_a_reply(model_server: ModelServer, model: str) -> None:
    def reply(**rule: object) -> Reply:
        model_server.rule(contains="judge", **rule)
        outcome = ask(configuration(model_server), model)
        assert isinstance(outcome, Reply), outcome
        return outcome

    cut = reply(reply='{"action": "BLO', finish_reason="length")
    assert (cut.text, cut.finish_reason) == ('{"action": "BLO', "length")
    uncounted = reply(reply="SAFE", usage=None)
    assert (uncounted.text, uncounted.input_tokens, uncounted.output_tokens) == ("SAFE", None, None)
    assert uncounted.cost_usd is None
    assert reply(reply="42", message={"reasoning_content": "let me think"}).text == "42"
    assert reply(reply="42", message={"reasoning_content": "let me think"}).reasoning == "let me think"
    assert reply(reply=None, finish_reason="content_filter").finish_reason == "content_filter"
    assert reply(reply="it ends in data: [DONE], it says").text == "it ends in data: [DONE], it says"


def test_events_are_read_to_their_end() -> None:
    body = (
        b': a comment\r\n\r\nevent: a\r\nid: 1\r\ndata: {"a": 1}\r\n\r\ndata:{"a": 2}\n\ndata: [DONE]\n\ndata: {"a": 3}'
    )
    assert list(read_events(body)) == [{"a": 1}, {"a": 2}]
    assert list(read_events(b'{"a": 1}\n{"a": 2}\n')) == [{"a": 1}, {"a": 2}]
    with pytest.raises(ValueError, match="Expecting"):
        list(read_events(b"data: {nope\n\n"))
