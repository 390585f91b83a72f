"""How the viewer shows a verdict: what it flags, what it calls an error, and which columns it shows."""

import polars as pl
import pytest

from evalake.models.request import Failure, Reply
from evalake.suites.command_guard.viewing import VIEWING
from tests.unit.suites.command_guard.rows import HARMLESS, MALICIOUS, row

ROWS = {
    "hit": row(Reply('{"action": "block"}')),
    "miss": row(Reply('{"action": "warn"}')),
    "alarm": row(Reply('{"action": "block"}'), HARMLESS),
    "unread": row(Reply("no"), HARMLESS),
    "unclear": row(Reply('{"action": "allow"} {"action": "block"}'), HARMLESS),
    "late": row(Failure("timeout", "slow", 5), MALICIOUS),
}
FRAME = pl.DataFrame(list(ROWS.values()), infer_schema_length=None).with_columns(name=pl.Series(list(ROWS)))


def of(expression: pl.Expr | None) -> dict[str, object]:
    assert expression is not None
    return dict(FRAME.select("name", value=expression).iter_rows())


@pytest.mark.parametrize(
    ("flag", "names"), [("missed", {"miss", "late"}), ("false_alarm", {"alarm"}), ("two_verdicts", {"unclear"})]
)
def test_items_are_chosen_by_what_went_wrong(flag: str, names: set[str]) -> None:
    assert {name for name, is_so in of(VIEWING.flags[flag]).items() if is_so} == names


def test_where_there_is_no_decision_it_is_said_why() -> None:
    assert of(VIEWING.error) == {
        "hit": None, "miss": None, "alarm": None, "unclear": None, "unread": "format_error", "late": "timeout"
    }  # fmt: skip
    assert of(VIEWING.verdict)["late"] == "TIMEOUT_ERROR"
    assert {name for name, right in of(VIEWING.correct).items() if right} == {"hit", "unclear"}
