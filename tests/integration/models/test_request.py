"""Requests, baselines and telemetry."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.configuration import Configuration
from evalake.core.hashing import NotCanonicalError, canonical_json
from evalake.models.client import Client
from evalake.models.request import BaselineRefusedError, Failure, Messages, Reply, Request, Revised, revision_of
from tests.integration.models.support import answer, request
from tests.servers.model_server import ModelServer

# The prompt hash is the key of a paid-for ledger: these vectors may never change.

USER = ({"role": "user", "content": "ls -la"},)
SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "strict": True, "schema": {"type": "object", "required": ["b", "a"]}},
}
GOLDEN = {
    "plain": Request("openai/gpt-4o-mini", USER, {}),
    "parameters": Request("openai/gpt-4o-mini", USER, {"temperature": 0.0, "max_tokens": 256, "seed": 7}),
    "float": Request("openai/gpt-4o-mini", USER, {"temperature": 0.1, "top_p": 1e-07}),
    "nested": Request("openai/gpt-4o-mini", USER, {"response_format": SCHEMA, "stop": ["\n\n", "END"]}),
    "unicode": Request(
        "anthropic/claude",
        ({"role": "system", "content": "Sei bündig — “kurz” 🐚"}, {"role": "user", "content": "rm -rf /\u202e\x00\n"}),
        {},
    ),
    "conversation": Request(
        "baseline/x", (*USER, {"role": "assistant", "content": ""}, {"role": "user", "content": "why?"}), {}
    ),
    "empty": Request("", (), {}),
}
HASHES = {
    "plain": "718e830ac2152548d8ee852c2f3a60d1cdd428a12f2a61088b1516ef439ca8aa",
    "parameters": "8ad88809e1a6b99a2a5c7a3c6a56bc1f9640385510573e2e42ea9ad85b6f7e4f",
    "float": "3785ba00eca31d81f2d5081e62352b0fc4c5d4de3772028834b75d03e1948521",
    "nested": "b148621b91721c389c41aaa1016cdbe2f66faf40c9fbf050c034b5cc0846b1c6",
    "unicode": "958d1863ac10cd4466380999631e826ce9f22d1bed3912280adc4b6a26e764a1",
    "conversation": "85440bce19b55b2fa1bd95b90f84d4d8d4b357b79ea31ff47394de0f98f49cb8",
    "empty": "9f1a736530d3464dcf865a89ddfabbefbb88b0825a2f280957edc3818a0b3753",
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_vectors(name: str) -> None:
    assert GOLDEN[name].prompt_hash == HASHES[name]


def test_the_canonical_form_is_sorted_dense_utf8_json() -> None:
    assert GOLDEN["parameters"].canonical == (
        b'{"max_tokens":256,"messages":[{"content":"ls -la","role":"user"}],'
        b'"model":"openai/gpt-4o-mini","seed":7,"temperature":0.0}'
    )


def test_every_part_that_can_change_the_reply_changes_the_hash() -> None:
    base = GOLDEN["parameters"]
    others = [
        Request("openai/gpt-4o", base.messages, base.parameters),
        Request(base.model, ({"role": "system", "content": "ls -la"},), base.parameters),
        Request(base.model, ({"role": "user", "content": "ls -la "},), base.parameters),
        Request(base.model, (*base.messages, *base.messages), base.parameters),
        Request(base.model, base.messages, {**base.parameters, "temperature": 0.5}),
        Request(base.model, base.messages, {**base.parameters, "top_p": 1.0}),
        *GOLDEN.values(),
    ]
    assert len({other.prompt_hash for other in others}) == len(others)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text().filter(lambda key: key not in ("model", "messages", "revision")), json_values, max_size=5)
)
def test_the_order_of_parameters_is_no_part_of_the_identity(parameters: dict[str, object]) -> None:
    try:
        expected = json.dumps(
            {"model": "m", "messages": list(USER), **parameters},
            sort_keys=True,
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()
    except UnicodeEncodeError:
        with pytest.raises(NotCanonicalError):
            _ = Request("m", USER, parameters).prompt_hash
        return
    backwards = dict(reversed(parameters.items()))
    assert Request("m", USER, parameters).prompt_hash == hashlib.sha256(expected).hexdigest()
    assert Request("m", USER, backwards).prompt_hash == hashlib.sha256(expected).hexdigest()


@given(
    st.lists(st.dictionaries(st.sampled_from(["role", "content"]), st.text(), min_size=1), max_size=4),
    st.dictionaries(st.sampled_from(["frequency_penalty", "max_tokens", "n", "temperature"]), json_values),
    st.sampled_from([None, "2026-01"]),
)
def test_the_hash_is_of_the_canonical_form_whatever_requests_share(
    messages: list[dict[str, str]], parameters: dict[str, object], revision: str | None
) -> None:
    for model in ("a/b", "a/c"):
        request = Request(model, tuple(messages), parameters, revision)
        whole = {**parameters, "model": model, "messages": messages, **({"revision": revision} if revision else {})}
        assert request.canonical == canonical_json(whole)
        assert request.prompt_hash == hashlib.sha256(request.canonical).hexdigest()


@pytest.mark.parametrize("name", ["revision", "model", "messages", "parameters.revision", "parameters.model"])
def test_a_parameter_that_is_named_as_a_field_is_another_request(name: str) -> None:
    asked = [
        Request("m", USER, {}),
        Request("m", USER, {}, "x"),
        Request("x", USER, {}),
        Request("m", USER, {name: "x"}),
        Request("m", USER, {name: "y"}),
        Request("m", USER, {f"parameters.{name}": "x"}),
        Request("m", USER, {name: "x", f"parameters.{name}": "x"}),
        Request("m", USER, {name: "x"}, "x"),
    ]
    assert len({each.prompt_hash for each in asked}) == len(asked)
    assert all(json.loads(each.canonical)["messages"] == list(USER) for each in asked)


# A baseline is called like any other model, without a network, a price or a latency.


def parrot(messages: Messages) -> str:
    if not messages[-1]["content"]:
        raise BaselineRefusedError("there is nothing to repeat")
    return messages[-1]["content"]


def test_a_baseline_answers_at_no_cost_and_states_no_latency() -> None:
    said = {"parrot": lambda messages: parrot(messages) + "\ud800"}  # no table can hold this half of a character
    with Client(Configuration(), baselines=said) as client:
        reply = answer(client, request("hello", "baseline/parrot", temperature=0.0))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.cost_usd, reply.latency_ms) == ("hello?", 0.0, None)
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
    assert (reply.text, revision_of("baseline/parrot", known)) == ("hello", "2")
    assert [revision_of(name, known) for name in ("baseline/first", "baseline/none", "parrot")] == [None] * 3


# Telemetry: off it costs no import, on it never stands in the way of a call; places nest, and cross threads.

ROOT = Path(__file__).resolve().parents[3]
CALL = """
import sys
from evalake.core.configuration import Configuration, ModelOptions
from evalake.models.client import Client
from evalake.models.request import Request
from evalake.models.telemetry import flush, scope

models = {"hosted_vllm/m": ModelOptions(api_base=sys.argv[1])}
with scope("whole", run_id="r"), Client(Configuration(models=models)) as client:
    with scope("part", batch="b", model="hosted_vllm/m"):
        for temperature in (0.0, 0.5):
            request = Request("hosted_vllm/m", ({"role": "user", "content": "x"},), {"temperature": temperature})
            print(type(client.run([client.call(request)])[0]).__name__)
flush()
print(sorted(name for name in sys.modules if name.startswith("opentelemetry.sdk."))[:1])
"""


def process(code: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_switched_off_the_sdk_is_not_imported(model_server: ModelServer) -> None:
    done = process(CALL, model_server.api_base)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["Reply", "Reply", "[]"]), done.stderr


def test_a_collector_that_is_not_there_keeps_no_call_from_being_made(model_server: ModelServer) -> None:
    nobody = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    done = process(CALL, model_server.api_base, EVALAKE_TELEMETRY="1", **nobody)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["Reply", "Reply"]
    assert len(model_server.seen) == 2


def test_without_the_package_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['opentelemetry.sdk'] = None\n" + "from evalake.models.telemetry import flush; flush()"
    )
    done = process(code, EVALAKE_TELEMETRY="1")
    said = (
        "ConfigurationError: EVALAKE_TELEMETRY is set, but OpenTelemetry is not installed: install evalake[telemetry]"
    )
    assert done.stderr.splitlines()[-1].endswith(said)


def test_a_switch_that_is_neither_on_nor_off_is_refused() -> None:
    done = process("from evalake.models.telemetry import flush; flush()", EVALAKE_TELEMETRY="yes")
    assert done.stderr.splitlines()[-1].endswith("EVALAKE_TELEMETRY must be 1 or unset, not yes")
