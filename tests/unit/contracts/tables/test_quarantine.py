"""A refused row says in words why, and the same row of a batch is refused once."""

from evalake.contracts.tables.quality import QUARANTINE
from tests.unit.contracts.tables.rows import broken_by


def test_a_refusal_says_why() -> None:
    assert broken_by(QUARANTINE, origin=None, rules=[]) == []
    assert broken_by(QUARANTINE, reason="\n") == ["reason_not_blank"]
    assert broken_by(QUARANTINE, row_key="7") == ["row_key_is_sha256"]


def test_the_same_row_of_a_batch_is_refused_once() -> None:
    assert QUARANTINE.key == ("batch_id", "row_key")
