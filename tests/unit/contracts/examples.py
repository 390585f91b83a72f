"""A contract with a rule of every kind, and for each rule the values at its edges: what is kept, and what is not."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import polars as pl
from pydantic import Field

from evalake.contracts.contract import Contract, RowModel
from evalake.contracts.engines.arrow import conform
from evalake.contracts.rule import Kind, Rule, Severity, TableKind, TableRule


class ExampleRow(RowModel):
    """One example."""

    name: str = Field(description="The key.")
    needed: str | None = Field(description="Never null.")
    number: float | None = Field(description="A finite number, or null.")
    text: str | None = Field(description="Not blank, or null.")
    state: Literal["done", "failed", "it's", 'say "x"', "two\nlines"] | None = Field(
        description="A known word, or null."
    )
    count: int | None = Field(description="0 to 10.")
    share: float | None = Field(description="0 to 1.")
    floor: float | None = Field(description="At least -1.5.")
    ceiling: int | None = Field(description="At most 3.")
    code: str | None = Field(description="Two hexadecimal digits, and more.")
    word: str | None = Field(description="One of two words, by a pattern.")
    low: float | None = Field(description="Not above high.")
    high: float | None = Field(description="Not below low.")
    part: int | None = Field(description="Not above total.")
    total: int | None = Field(description="Not below part.")
    begun: datetime | None = Field(description="Not after ended.")
    ended: datetime | None = Field(description="Not before begun.")
    flag: bool | None = Field(description="Says whether a reason and an error are needed.")
    reason: str | None = Field(description="Needed in some states.")
    error: str | None = Field(description="Forbidden where flag is true.")
    items: list[str] | None = Field(description="Empty, or null.")


EXAMPLE = Contract(
    "example",
    ExampleRow,
    ("name",),
    "A table for tests.",
    (
        Rule("needed_present", "needed", Kind.PRESENT),
        Rule("text_not_blank", "text", Kind.NOT_BLANK),
        Rule("count_between", "count", Kind.BETWEEN, {"minimum": 0, "maximum": 10}),
        Rule("share_between", "share", Kind.BETWEEN, {"minimum": 0, "maximum": 1}),
        Rule("floor_between", "floor", Kind.BETWEEN, {"minimum": -1.5, "maximum": None}),
        Rule("ceiling_between", "ceiling", Kind.BETWEEN, {"minimum": None, "maximum": 3}, Severity.CRITICAL),
        Rule("code_matches", "code", Kind.MATCHES, {"pattern": r"[0-9a-f]{2}(?:-.+)?"}),
        Rule("word_matches", "word", Kind.MATCHES, {"pattern": r"yes|no\?"}),
        Rule("low_not_above", "low", Kind.NOT_ABOVE, {"other": "high"}),
        Rule("part_not_above", "part", Kind.NOT_ABOVE, {"other": "total"}, Severity.WARNING),
        Rule("begun_not_above", "begun", Kind.NOT_ABOVE, {"other": "ended"}),
        Rule(
            "reason_present", "reason", Kind.PRESENT_WHEN, {"other": "state", "values": ("failed", "it's", 'say "x"')}
        ),
        Rule("error_absent", "error", Kind.ABSENT_WHEN, {"other": "flag", "values": (True,)}),
        Rule("error_absent_twice", "error", Kind.ABSENT_WHEN, {"other": "count", "values": (3, 4)}, Severity.WARNING),
        Rule("items_empty", "items", Kind.EMPTY),
    ),
    extra_table_rules=(
        TableRule("rows", TableKind.ROW_COUNT, {"minimum": 1, "maximum": 1000}),
        TableRule(
            "failed_share",
            TableKind.SHARE_BY_GROUP,
            {"column": "state", "values": ("failed",), "group": "word", "maximum": 0.5},
            Severity.WARNING,
        ),
    ),
)

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
LATER = NOON + timedelta(microseconds=1)
SAME_ELSEWHERE = NOON.astimezone(timezone(timedelta(hours=5, minutes=45)))
LARGEST = 1.7976931348623157e308

# Rule id: the values of its columns that keep it, and those that break it.
EDGES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "needed_present": ([{"needed": ""}, {"needed": "null"}], [{"needed": None}]),
    "number_finite": (
        [{"number": value} for value in (None, 0.0, -0.0, 5e-324, LARGEST, -LARGEST)],
        [{"number": value} for value in (math.nan, math.inf, -math.inf)],
    ),
    "text_not_blank": (
        [{"text": value} for value in (None, "a", " a ", "\n.", "\u200b", "\x00", "\x1c", "\u180e", "\U0001f600")],
        [
            {"text": value}
            for value in ("", " ", "\t\r\n\v\f", "\u00a0", "\u2003\u3000", "\u2028\u2029", "\x85", "\u1680")
        ],
    ),
    "state_known": (
        [{"state": value, "reason": "r"} for value in (None, "done", "it's", 'say "x"', "two\nlines")],
        [{"state": value, "reason": "r"} for value in ("", "Done", "done ", "done\n", "two lines", "its", "null")],
    ),
    "count_between": (
        [{"count": value} for value in (None, 0, 10)],
        [{"count": value} for value in (-1, 11, 2**63 - 1)],
    ),
    "share_between": (
        [{"share": value} for value in (None, 0.0, -0.0, 1.0, 5e-324)],
        [{"share": value} for value in (-5e-324, 1.0000000000000002, math.nan, math.inf, -math.inf)],
    ),
    "floor_between": (
        [{"floor": value} for value in (None, -1.5, LARGEST, math.inf)],
        [{"floor": value} for value in (-1.6, math.nan, -math.inf)],
    ),
    "ceiling_between": (
        [{"ceiling": value} for value in (None, 3, -(2**63))],
        [{"ceiling": value} for value in (4, 2**62)],
    ),
    "code_matches": (
        [{"code": value} for value in (None, "0f", "0f-x", "0f-\U0001f600", "0f-\r", "0f-\u2028$")],
        [
            {"code": value}
            for value in (
                "",
                "0",
                "0F",
                "0f ",
                "0f\n",
                "\n0f",
                "x0f",
                "0fx",
                "0f-",
                "0f-\n",
                "0f-a\nb",
                "0f\r\n",
                "٠f",
                "0f\x00",
            )
        ],
    ),
    "word_matches": (
        [{"word": value} for value in (None, "yes", "no?")],
        [{"word": value} for value in ("", "no", "yesno?", "yes?", "xno?", "yes\n", "no?\n", "n", "yeſ")],
    ),
    "low_not_above": (
        [
            {"low": 1.0, "high": 1.0},
            {"low": -math.inf, "high": 0.0},
            {"low": None, "high": math.nan},
            {"low": 2.0, "high": None},
        ],
        [
            {"low": 2.0, "high": 1.0},
            {"low": math.nan, "high": 1.0},
            {"low": 1.0, "high": math.nan},
            {"low": math.nan, "high": math.nan},
            {"low": math.inf, "high": LARGEST},
        ],
    ),
    "part_not_above": (
        [{"part": 1, "total": 1}, {"part": 2, "total": None}, {"part": None, "total": 0}],
        [{"part": 2**53 + 1, "total": 2**53}, {"part": 0, "total": -1}],
    ),
    "begun_not_above": (
        [{"begun": NOON, "ended": LATER}, {"begun": NOON, "ended": SAME_ELSEWHERE}, {"begun": NOON, "ended": None}],
        [{"begun": LATER, "ended": NOON}],
    ),
    "reason_present": (
        [{"state": "failed", "reason": ""}, {"state": "done", "reason": None}, {"state": None, "reason": None}],
        [{"state": "failed", "reason": None}, {"state": "it's", "reason": None}, {"state": 'say "x"', "reason": None}],
    ),
    "error_absent": (
        [{"flag": True, "error": None}, {"flag": False, "error": "e"}, {"flag": None, "error": "e"}],
        [{"flag": True, "error": "e"}, {"flag": True, "error": ""}],
    ),
    "error_absent_twice": (
        [{"count": 3, "error": None}, {"count": 5, "error": "e"}, {"count": None, "error": "e"}],
        [{"count": 3, "error": "e"}, {"count": 4, "error": "e"}],
    ),
    "items_empty": ([{"items": None}, {"items": []}], [{"items": ["a"]}, {"items": [""]}, {"items": ["a", "b"]}]),
}


def row(**values: Any) -> dict[str, Any]:
    """A row that keeps every rule, all nulls where nulls may be, with some values of its own."""
    return {**dict.fromkeys(EXAMPLE.column), "name": "n", "needed": "x", **values}


def edges() -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every edge: the rule, a whole row, and whether it keeps the rule."""
    for rule_id, (kept, broken) in EDGES.items():
        for number, values in enumerate((*kept, *broken)):
            yield rule_id, row(name=f"{rule_id} {number}", **values), number < len(kept)


def edge_frame() -> pl.DataFrame:
    """All edges as one frame, in the order of `edges`."""
    return conform([values for _, values, _ in edges()], EXAMPLE)
