"""A call that was given up on is told by its request and says of which kind its failure is."""

from evalake.contracts.tables.ledger import CALL_FAILURES
from tests.unit.contracts.tables.rows import broken_by


def test_a_failure_without_a_kind_or_a_request_is_refused() -> None:
    assert broken_by(CALL_FAILURES) == []
    assert broken_by(CALL_FAILURES, kind=" ") == ["kind_not_blank"]
    assert broken_by(CALL_FAILURES, prompt_hash="0A" * 32) == ["prompt_hash_is_sha256"]


def test_what_was_never_measured_is_null() -> None:
    assert broken_by(CALL_FAILURES, latency_ms=None, queue_ms=None, failed_cost_usd=None) == []


def test_each_run_has_its_own_failure_of_a_call() -> None:
    assert CALL_FAILURES.key == ("run_id", "prompt_hash", "replicate")
    assert CALL_FAILURES.replaced_when is None
