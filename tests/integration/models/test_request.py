"""The prompt hash is the key of a paid-for ledger: these vectors may never change."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.hashing import NotCanonicalError, canonical_json
from evalake.models.request import Request

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


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, "\ud800"])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(NotCanonicalError):
        _ = Request("m", USER, {"x": value}).prompt_hash


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
