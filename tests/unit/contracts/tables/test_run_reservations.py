"""What a process holds back of a ceiling: it has a holder, and is never below zero."""

from evalake.contracts.tables.runs import RUN_RESERVATIONS
from tests.unit.contracts.tables.rows import broken_by


def test_nobody_holds_back_less_than_nothing() -> None:
    assert broken_by(RUN_RESERVATIONS, reserved_usd=0.0, reserved_calls=0, outside_usd=0.0, outside_calls=0) == []
    for column in ("reserved_usd", "outside_usd"):
        assert broken_by(RUN_RESERVATIONS, **{column: -1e-12}) == [f"{column}_not_negative"]
    for column in ("reserved_calls", "outside_calls"):
        assert broken_by(RUN_RESERVATIONS, **{column: -1}) == [f"{column}_not_negative"]


def test_what_is_held_back_has_a_holder_whose_last_row_counts() -> None:
    assert broken_by(RUN_RESERVATIONS, holder=" ") == ["holder_not_blank"]
    assert RUN_RESERVATIONS.replaced_when == "TRUE"
