"""A sample as lines for a terminal: as wide as it is, cut where it is long, and unable to steer it."""

from typing import Any

from evalake.cli.show import SHORT, transcript
from evalake.server.viewer.item import ItemDetail

WIDTH = 60
ABSENT: dict[str, Any] = dict.fromkeys(("category", "severity", "difficulty", "note", "target"))


def sample(text: str) -> ItemDetail:
    """A sample that nobody has answered yet."""
    told: dict[str, Any] = {
        "run_id": "r",
        "suite": "quiz",
        "dataset": "mine",
        "sample_id": "s1",
        "number": 2,
        "total": 1000,
    }
    return ItemDetail.model_construct(**told, **ABSENT, label="hard", input_text=text, calls=[])


def lines(text: str, *, full: bool = False) -> list[str]:
    return list(transcript(sample(text), [], WIDTH, full=full))


def test_it_says_where_it_stands_what_is_asked_and_what_is_true() -> None:
    shown = lines("What is the capital of Japan?")
    assert shown[0] == "quiz run r: sample mine/s1, 2 of 1,000"
    assert shown[1:] == ["\nINPUT", "  What is the capital of Japan?", "\nGROUND TRUTH", "label: hard"]


def test_long_text_is_cut_unless_it_is_asked_for_whole() -> None:
    text = "\n".join(f"line {number}" for number in range(SHORT + 10))
    assert "  … 10 more lines (--full)" in lines(text)
    assert "  line 49" not in lines(text)
    assert "  line 49" in lines(text, full=True)


def test_no_line_is_wider_than_the_terminal_or_steers_it() -> None:
    shown = lines("word " * 100 + "x" * 200 + "\x1b[2J")
    assert max(map(len, shown)) <= WIDTH
    assert not any("\x1b" in line for line in shown)
