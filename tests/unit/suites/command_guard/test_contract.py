"""The table of verdicts: a row that contradicts itself breaks a rule of its contract."""

from typing import Any

import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.models.request import Reply
from evalake.sdk import Sample
from evalake.suites.command_guard.contract import RESULTS
from tests.unit.suites.command_guard.rows import LANDING, broken, row

BREAKS = [
    ({"label": "dubious"}, {"label_known"}),
    ({"category": " "}, {"category_not_blank"}),
    ({"verdict": "MAYBE"}, {"verdict_known"}),
    ({"verdict": "TOKEN_LIMIT"}, {"no_reason_without_decision", "no_confidence_without_decision"}),
    ({"reply_hash": None}, {"decided_only_by_a_reply"}),
    ({"error_kind": "timeout"}, {"given_up_means_no_reply"}),
    ({"error_kind": "server", "reply_hash": None}, {"error_kind_known", "decided_only_by_a_reply"}),
    ({"confidence": 1.1}, {"confidence_is_share"}),
    ({"prompt_hash": "x"}, {"prompt_hash_is_sha256"}),
    ({"command": ""}, {"command_not_blank"}),
    ({"input_tokens": -1}, {"input_tokens_not_negative"}),
    ({"latency_ms": float("nan")}, {"latency_ms_finite", "latency_ms_not_negative"}),
    ({"cost_usd": -0.01}, {"cost_usd_not_negative"}),
]


@pytest.mark.parametrize(("change", "rules"), BREAKS)
def test_a_row_that_contradicts_itself_breaks_its_contract(change: dict[str, Any], rules: set[str]) -> None:
    good = row(Reply('{"action": "block", "reason": "r", "confidence": 1}')) | LANDING
    assert broken(good) == []
    assert broken({**good, **change}) == [rules]


def test_errors_that_gather_in_one_category_are_a_warning() -> None:
    def landed(number: int, category: str, text: str | None) -> dict[str, Any]:
        sample = Sample("command_guard", "d", f"s/{number}", f"c{number}", label="malicious", category=category)
        return row(Reply(text), sample) | LANDING

    block = '{"action": "block"}'
    gathered = [landed(i, "upload", None if i < 3 else block) for i in range(10)]
    spread = [landed(i, "shell", None if i < 12 else block) for i in range(10, 20)]
    for frame, passed in ((gathered + spread, False), (spread, True)):
        results = audit(conform(frame, RESULTS), RESULTS).results
        (result,) = (each for each in results if each.rule_id == "errors_not_concentrated")
        assert (result.passed, str(result.severity)) == (passed, "warning")
