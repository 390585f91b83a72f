"""Text: hashes, formulas, visible characters, URLs and names."""

import hashlib
import json
import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.configuration import WORDS, Configuration
from evalake.core.errors import EvalakeError, UsageError
from evalake.core.hashing import NotCanonicalError, canonical_json, content_hash, list_hash
from evalake.core.redaction import FORMULA, NO_PASSWORD, has_password, is_formula, require_no_password, visible
from tests.cases import cases_beside

CASES = cases_beside(__file__, "text.json")

# Content hashes are pinned: a changed hash throws away a paid-for ledger.

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


@pytest.mark.parametrize(("value", "text", "digest"), CASES["canonical"])
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


# What a spreadsheet may take for a formula; tests/attacks/test_files.py has the sheets.


@pytest.mark.parametrize(("text", "is_one"), [("=1", True), ("  ＝1", True), ("\t", True), ("1=1", False), ("", False)])
def test_python_and_polars_read_the_pattern_alike(text: str, is_one: bool) -> None:
    assert is_formula(text) is is_one
    assert pl.Series([text]).str.contains(FORMULA).item() is is_one


def test_every_character_is_told_alike_before_a_sign() -> None:
    texts = [f"{chr(code)}=1" for code in range(0x2100) if not re.match(r"[\ud800-\udfff]", chr(code))]
    assert pl.Series(texts).str.contains(FORMULA).to_list() == [is_formula(text) for text in texts]


# What others wrote cannot steer a terminal, hide or turn text round; what people read stays as it is.


def test_what_steers_hides_or_turns_is_escaped_and_all_else_stays() -> None:
    assert visible("a\x1b[31m\u202eb\u2028\ud800\U000e0041") == "a\\u001b[31m\\u202eb\\u2028\\ud800\\U000e0041"
    assert visible("ls\n\t-l 名前 🙂 é") == "ls\n\t-l 名前 🙂 é"


def test_selectors_of_variants_stay_behind_symbols_only() -> None:
    assert visible("\u2764\ufe0f 1\ufe0f\u20e3") == "\u2764\ufe0f 1\ufe0f\u20e3"
    hidden = "a\ufe0f\ufe01\U000e0101\u034f\u180b"
    assert visible(hidden) == "a\\ufe0f\\ufe01\\U000e0101\\u034f\\u180b"


# Which URLs hold a password, by the function and by the pattern that the forms of flows are given.


@pytest.mark.parametrize("url", CASES["passwords"])
def test_a_password_is_found(url: str) -> None:
    assert has_password(url)
    assert re.search(NO_PASSWORD, url) is None
    with pytest.raises(UsageError) as refused:
        require_no_password("a dataset", url, "set PGPASSWORD")
    assert "s3" not in str(refused.value).replace("s3://…", "")


@pytest.mark.parametrize("url", CASES["harmless"])
def test_what_holds_none_is_left_alone(url: str) -> None:
    assert not has_password(url)
    require_no_password("a dataset", url, "set PGPASSWORD")


# The words for endpoints: no name of the user's, and no address, can pass for one of them.


@pytest.mark.parametrize("name", [*WORDS, "Lab", "a b", "http://x", "x" * 65])
def test_names_that_could_pass_for_something_else_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="endpoint"):
        Configuration.model_validate({"models": {"openai/m": {"endpoint": name}}})
