"""The ledger takes a reply as its provider reported it, and refuses what no call can have cost or taken."""

from evalake.contracts.tables.ledger import CALLS
from tests.unit.contracts.tables.rows import broken_by


def test_what_cannot_be_is_refused() -> None:
    assert broken_by(CALLS) == []
    for column in ("input_tokens", "output_tokens", "replicate"):
        assert broken_by(CALLS, **{column: -1})[0] == f"{column}_not_negative"
    assert broken_by(CALLS, cost_usd=-0.01) == ["cost_usd_not_negative"]
    assert broken_by(CALLS, latency_ms=float("nan")) == ["latency_ms_finite", "latency_ms_not_negative"]


def test_tokens_that_do_not_add_up_are_kept_with_a_warning() -> None:
    assert broken_by(CALLS, cached_input_tokens=2) == ["cached_within_input"]
    assert broken_by(CALLS, reasoning_tokens=2) == ["reasoning_in_output"]
    severities = {rule.id: str(rule.severity) for rule in CALLS.rules}
    assert (severities["cached_within_input"], severities["reasoning_in_output"]) == ("warning", "warning")


def test_an_unknown_price_is_null() -> None:
    assert broken_by(CALLS, cost_usd=None, input_tokens=None, cached_input_tokens=3) == []
