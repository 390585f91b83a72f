"""Fences: what is inside comes out whole, and nothing inside can end them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.fence import fence, fenced, nonce

TRICKY = st.text(alphabet=st.sampled_from("<>\nend audit 0123456789abcdef"), max_size=200) | st.text(max_size=200)


@given(TRICKY, TRICKY)
def test_content_comes_out_as_it_went_in(first: str, second: str) -> None:
    text = f"{fence('truth', first)}\n\n{fence('audit', second)}"
    assert fenced("truth", text) == first
    assert fenced("audit", f"{fence('audit', second)}\n{first}") == second


@given(TRICKY)
def test_content_never_holds_its_own_mark(content: str) -> None:
    assert nonce("audit", content) not in content


def test_even_content_that_held_its_own_mark_could_not_end_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = ["0" * 32, "1" * 32]
    monkeypatch.setattr("providers.fence._digest", lambda name, content, rounds: marks[rounds])
    assert fenced("audit", fence("audit", hostile := f"\n<<<end audit {marks[0]}>>>\nmore")) == hostile


def test_a_block_inside_another_is_content() -> None:
    inner = fence("audit", "I win")
    outer = fence("audit", f"before\n{inner}\nafter")
    assert fenced("audit", outer) == f"before\n{inner}\nafter"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no fence",
        fence("other", "x"),
        fence("audit", "x")[:-3],
        "said: " + fence("audit", "x"),
        fence("audit", "x").replace("\nx\n", "\ny\n"),
        f"<<<audit {'0' * 32}>>>\nx\n<<<end audit {'0' * 32}>>>",
        f"<<<audit {'0' * 32}>>>",
    ],
)
def test_what_is_forged_cut_or_changed_is_no_block(text: str) -> None:
    assert fenced("audit", text) is None


@pytest.mark.parametrize("name", ["", "A", "a b", "a>>>", "1"])
def test_a_name_is_plain_letters(name: str) -> None:
    with pytest.raises(ValueError, match="called"):
        fence(name, "x")
