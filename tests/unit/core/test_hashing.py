"""Content hashes are pinned: a changed hash throws away a paid-for ledger."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.errors import EvalakeError
from evalake.core.hashing import NotCanonicalError, canonical_json, content_hash, list_hash

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


@pytest.mark.parametrize(
    ("value", "text", "digest"),
    [
        ({}, "{}", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
        ([], "[]", "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"),
        (None, "null", "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"),
        ("", '""', "12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126"),
        (
            {"model": "openai/gpt-5.1", "messages": [{"role": "user", "content": "rm -rf /"}], "temperature": 0.0},
            '{"messages":[{"content":"rm -rf /","role":"user"}],"model":"openai/gpt-5.1","temperature":0.0}',
            None,
        ),
        ({"é": "ß", "z": "\U0001f600", "a": '\n"\\\u2028'}, '{"a":"\\n\\"\\\\\u2028","z":"\U0001f600","é":"ß"}', None),
        ([1, 1.0, -0.0, 1e100, True, False], "[1,1.0,-0.0,1e+100,true,false]", None),
    ],
)
def test_golden_vectors(value: Any, text: str, digest: str | None) -> None:
    assert canonical_json(value) == text.encode("utf-8")
    assert content_hash(value) == hashlib.sha256(text.encode("utf-8")).hexdigest()
    if digest is not None:
        assert content_hash(value) == digest


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        {"x": [float("inf")]},
        -float("inf"),
        "\ud800",
        {"\udfff": 1},
        b"bytes",
        {1, 2},
        object(),
        {("a", "b"): 1},
        {"a": 1, 1: 2},
        _nested(100_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(
        NotCanonicalError, match=r"^a value cannot be hashed because it has no canonical JSON form"
    ) as caught:
        content_hash(value)
    assert isinstance(caught.value, EvalakeError)
    assert "\n" not in str(caught.value)


@given(st.lists(VALUES, max_size=5))
def test_a_list_is_hashed_piece_by_piece_as_it_is_whole(values: list[Any]) -> None:
    assert list_hash(iter(values)) == content_hash(values)


@given(VALUES)
def test_values_are_written_as_the_standard_library_writes_them(value: Any) -> None:
    written = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    assert canonical_json(value) == written.encode("utf-8")
