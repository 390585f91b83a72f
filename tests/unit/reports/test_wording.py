"""How values and names are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.reports.wording import interval, number, short_names, visible
from evalake.sdk.figures import Unit


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.8988, Unit.SHARE, "89.9%"),
        (1.0, Unit.SHARE, "100.0%"),
        (0.4517, Unit.SCORE, "0.452"),
        (54.25, Unit.POINTS, "54.2"),
        (1234, Unit.COUNT, "1,234"),
        (2.5, Unit.COUNT, "2.5"),
        (0.0, Unit.US_DOLLARS, "$0.00"),
        (0.000123, Unit.US_DOLLARS, "$0.000123"),
        (0.000009, Unit.US_DOLLARS, "$0.000009"),
        (0.2, Unit.US_DOLLARS, "$0.20"),
        (1234.5, Unit.US_DOLLARS, "$1,234.50"),
        (16665.2, Unit.MILLISECONDS, "16.7 s"),
        (250.0, Unit.MILLISECONDS, "250 ms"),
        (0.02, Unit.MILLISECONDS, "20.0 µs"),
        (0.0, Unit.MILLISECONDS, "0.0 µs"),
        (None, Unit.SHARE, "–"),
        (float("nan"), Unit.US_DOLLARS, "–"),
        (float("inf"), Unit.COUNT, "–"),
    ],
)
def test_numbers_by_unit(value: float | None, unit: Unit, text: str) -> None:
    assert number(value, unit) == text


def test_an_interval_takes_the_scale_of_its_value() -> None:
    assert interval(900.0, 1200.0, Unit.MILLISECONDS, 1100.0) == "[0.9–1.2]"
    assert interval(0.1, None, Unit.SHARE, 0.2) == ""


def test_long_text_says_what_is_missing() -> None:
    assert visible("x" * 5000, 10) == "x" * 10 + "… (4,990 more characters)"


@given(st.lists(st.text(max_size=80), max_size=12))
def test_short_names_are_short_and_different(names: list[str]) -> None:
    short = short_names(names)
    assert len(short) == len(names)
    assert len(set(short)) == len(names)
    assert all(len(name) <= 26 + len(" (12)") and "\n" not in name for name in short)


def test_a_number_given_to_a_name_never_makes_it_another_name() -> None:
    assert len(set(short_names(["a", "a", "a (2)"]))) == 3


def test_wide_characters_take_two_cells_of_a_short_name() -> None:
    assert short_names(["名" * 13, "名" * 14]) == ["名" * 13, "名" * 8 + "…" + "名" * 4]


def test_names_keep_what_tells_them_apart() -> None:
    assert short_names(["openai/gpt-5.1", "provider/with-a-long-name/model-7"]) == ["openai/gpt-5.1", "model-7"]
