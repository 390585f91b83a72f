"""What is made of an answer: odd ones are replies, and no key of ours is in any."""

import json

import pytest

from evalake.core.configuration import Configuration, Limits, ModelOptions
from evalake.core.redaction import KnownKeys, redact
from evalake.models.client import Client
from evalake.models.request import Reply
from tests.integration.models.support import PROVIDERS, QUICK, answer, answers, configuration, request
from tests.servers.model_server import ModelServer


def with_a_secret(server: ModelServer, provider: str = "hosted_vllm") -> Configuration:
    options = ModelOptions(api_base=server.api_base)
    return Configuration(models={f"{provider}/m": options}, providers={provider: NAMED})


KEY = "kept-in-a-block-3141592653"

NAMED = Limits(api_key_secret="the-block")


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
        assert (reply("refused").text, reply("refused").refusal) == (None, "I cannot help with that.")
        assert (reply("cut").text, reply("cut").finish_reason) == ('{"action": "BLO', "length")
        assert (reply("thought").text, reply("thought").reasoning) == ("42", "let me think")
        assert reply("surrogate").text == "half a ? character \x00"
        plain = reply("plain")
        assert (plain.input_tokens, plain.output_tokens, plain.model_reported) == (20, 5, "m")
        assert (plain.cached_input_tokens, plain.reasoning_tokens, plain.cost_usd) == (None, None, None)
        assert plain.latency_ms is not None
        uncounted = reply("uncounted")
        assert (uncounted.input_tokens, uncounted.output_tokens) == (None, None)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_keys_that_a_model_echoes_are_not_in_its_reply(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("SOMEONES_API_KEY", "of-somebody-else-27182")
    model_server.rule(reply=f"I was called with {KEY}, and know of-somebody-else-27182", finish_reason="stop")
    with Client(with_a_secret(model_server, provider), QUICK, lambda _: KEY) as client:
        reply = answer(client, request("x", f"{provider}/m"))
    assert isinstance(reply, Reply)
    assert reply.text == "I was called with [redacted], and know [redacted]"


def test_a_key_is_found_however_json_spells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEONES_API_KEY", KEY)
    escaped = "".join(f"\\u{ord(c):04X}" for c in KEY)
    mixed = KEY[:5] + f"\\u{ord(KEY[5]):04x}" + KEY[6:]
    keys = KnownKeys()
    for spelled in (escaped, mixed):
        assert json.loads(f'"{spelled}"') == KEY
        assert keys.redact(f'{{"reason": "{spelled}"}}') == '{"reason": "[redacted]"}'
    assert keys.redact('{"reason": "\\u0041 b"}') == '{"reason": "\\u0041 b"}'


def test_what_only_looks_like_a_key_is_a_models_answer(model_server: ModelServer) -> None:
    said = "curl -H 'Authorization: Bearer abcdefgh12345' leaks sk-abcdefgh12345678 and AKIAIOSFODNN7EXAMPLE"
    model_server.rule(reply=said)
    with Client(with_a_secret(model_server), read_secret=lambda _: KEY) as client:
        outcomes = answers(client, [request("x")])
    assert [outcome.text for outcome in outcomes.values() if isinstance(outcome, Reply)] == [said]
    assert redact(said) != said == KnownKeys().redact(said)


def test_no_password_of_something_else_distorts_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_PASSWORD", "postgres")
    assert KnownKeys().redact("connect to postgres") == "connect to postgres"
    assert redact("connect to postgres") == "connect to [redacted]"
