"""A withdrawal names one reply, by call and revision, and says why."""

from evalake.contracts.tables.ledger import WITHDRAWN_CALLS
from tests.unit.contracts.tables.rows import broken_by


def test_a_withdrawal_names_a_reply_and_a_kind() -> None:
    assert broken_by(WITHDRAWN_CALLS) == []
    assert broken_by(WITHDRAWN_CALLS, reply_revision=-1) == ["reply_revision_not_negative"]
    assert broken_by(WITHDRAWN_CALLS, kind=" ") == ["kind_not_blank"]
