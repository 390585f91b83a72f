"""What each shared table takes and refuses: a sound row with some values of its own, and the rules that it breaks."""

from typing import Any

import pytest

from evalake.contracts import tables
from evalake.contracts.contract import Contract
from evalake.contracts.tables.ledger import WITHDRAWN_CALLS
from evalake.contracts.tables.metrics import JUDGE_CANARIES, JUDGE_VERSIONS
from evalake.contracts.tables.people import ROADMAP_MENTIONS
from evalake.contracts.tables.quality import FORGOTTEN
from evalake.contracts.tables.runs import RUN_ATTEMPTS, RUN_CALLS, RUN_COVERAGE, RUN_RESERVATIONS
from tests.unit.contracts.tables.rows import BEFORE, NOON, SHA, broken_by

NAN = float("nan")
COUNTS = {"asked": 3, "answered": 2, "without_verdict": 1, "missing": 1}
FREE = {"reserved_usd": 0.0, "reserved_calls": 0, "outside_usd": 0.0, "outside_calls": 0}

KEPT: list[tuple[Contract, dict[str, Any]]] = [
    (tables.CALLS, {}),
    (tables.CALLS, {"cost_usd": None, "input_tokens": None, "cached_input_tokens": 3}),
    (tables.CALL_FAILURES, {"latency_ms": None, "queue_ms": None, "failed_cost_usd": None}),
    (WITHDRAWN_CALLS, {}),
    (tables.CONTRACT_CHECKS, {"rows_checked": 3, "rows_failed": 3}),
    *((tables.CONTRACT_CHECKS, {"engine": engine}) for engine in ("polars", "great_expectations", "delta")),
    (FORGOTTEN, {"row_hash": SHA, "first_version": None}),
    (JUDGE_CANARIES, dict.fromkeys(("distance", "noise", "shift", "p_value"))),
    (JUDGE_VERSIONS, {"p_value": None}),
    (tables.METRIC_SNAPSHOTS, {"value": None, "n": 0, "se": None, "ci_low": None, "ci_high": None}),
    (tables.METRIC_SNAPSHOTS, {"ci_low": 0.2, "ci_high": 0.2}),
    (tables.QUARANTINE, {"origin": None, "rules": []}),
    (ROADMAP_MENTIONS, {"text": None, "judge": None, "points_lost": 0.0}),
    *((tables.RUNS, {"state": state, "ended_at": None}) for state in ("running", "completed", "incomplete", "failed")),
    (tables.RUNS, {"cost_usd": None, "input_tokens": None}),
    (RUN_ATTEMPTS, {"attempt": 1, "ended_at": None}),
    (RUN_CALLS, {"judge": "", "cost_usd": None, "input_tokens": None, "cost_usd_avoided": None}),
    (RUN_COVERAGE, {**COUNTS, "source_rows": None, "model": "", "judge": "", "dataset": ""}),
    (tables.RUN_ITEMS, {"judge": None, "judge_hash": None}),
    (RUN_RESERVATIONS, FREE),
    (tables.SNAPSHOTS, {"warnings": ["few samples"]}),
]
BROKEN: list[tuple[Contract, dict[str, Any], str]] = [
    *((tables.CALLS, {name: -1}, f"{name}_not_negative") for name in ("input_tokens", "output_tokens", "replicate")),
    (tables.CALLS, {"cost_usd": -0.01}, "cost_usd_not_negative"),
    (tables.CALLS, {"latency_ms": NAN}, "latency_ms_finite"),
    (tables.CALLS, {"cached_input_tokens": 2}, "cached_within_input"),
    (tables.CALLS, {"reasoning_tokens": 2}, "reasoning_in_output"),
    (tables.CALL_FAILURES, {"kind": " "}, "kind_not_blank"),
    (tables.CALL_FAILURES, {"prompt_hash": "0A" * 32}, "prompt_hash_is_sha256"),
    (WITHDRAWN_CALLS, {"reply_revision": -1}, "reply_revision_not_negative"),
    (WITHDRAWN_CALLS, {"kind": " "}, "kind_not_blank"),
    (tables.CONTRACT_CHECKS, {"rows_checked": 3, "rows_failed": 4}, "failed_in_checked"),
    (tables.CONTRACT_CHECKS, {"engine": "spark"}, "engine_known"),
    (FORGOTTEN, {"row_hash": "the secret itself"}, "row_hash_is_sha256"),
    (FORGOTTEN, {"first_version": -1}, "first_version_not_negative"),
    *((JUDGE_CANARIES, {name: 1.5}, f"{name}_is_share") for name in ("distance", "noise", "shift", "p_value")),
    (JUDGE_CANARIES, {"day": "22.11.2026"}, "day_is_date"),
    (JUDGE_CANARIES, {"version": 0}, "version_from_one"),
    (JUDGE_VERSIONS, {"version": 0}, "version_from_one"),
    *((JUDGE_VERSIONS, {"day": day}, "day_is_date") for day in ("2026-11-22T00:00", "2026-1-22")),
    (JUDGE_VERSIONS, {"p_value": -0.1}, "p_value_is_share"),
    (tables.METRIC_SNAPSHOTS, {"value": NAN}, "value_finite"),
    (tables.METRIC_SNAPSHOTS, {"n": -1}, "n_not_negative"),
    (tables.METRIC_SNAPSHOTS, {"se": -1.0}, "se_not_negative"),
    (tables.METRIC_SNAPSHOTS, {"ci_low": 0.3, "ci_high": 0.2}, "interval_ordered"),
    (tables.QUARANTINE, {"reason": "\n"}, "reason_not_blank"),
    (tables.QUARANTINE, {"row_key": "7"}, "row_key_is_sha256"),
    *((ROADMAP_MENTIONS, {name: ""}, f"{name}_not_blank") for name in ("name", "kind", "theme", "suite", "sample_id")),
    (ROADMAP_MENTIONS, {"points_lost": -0.5}, "points_lost_not_negative"),
    (ROADMAP_MENTIONS, {"samples": 0}, "samples_from_one"),
    *((table, {"started_at": NOON, "ended_at": BEFORE}, "ends_after_start") for table in (tables.RUNS, RUN_ATTEMPTS)),
    (tables.RUNS, {"state": "lost"}, "state_known"),  # which is told from `alive_at`, and never stored
    (tables.RUNS, {"cost_usd": -1.0}, "cost_usd_not_negative"),
    (RUN_ATTEMPTS, {"attempt": 0}, "attempt_from_one"),
    (RUN_ATTEMPTS, {"state": "crashed"}, "state_known"),
    *((RUN_CALLS, {name: -1}, f"{name}_not_negative") for name in ("calls_made", "calls_from_ledger")),
    (RUN_CALLS, {"cost_usd": -0.01}, "cost_usd_not_negative"),
    (RUN_CALLS, {"model": ""}, "model_not_blank"),
    (RUN_COVERAGE, {**COUNTS, "answered": 4}, "answered_within_asked"),
    (RUN_COVERAGE, {**COUNTS, "without_verdict": 3}, "without_verdict_within_answered"),
    (RUN_COVERAGE, {**COUNTS, "missing": -1}, "missing_not_negative"),
    *((tables.RUN_ITEMS, {name: SHA[:-1]}, f"{name}_is_sha256") for name in ("item_id", "sample_hash", "prompt_hash")),
    *((RUN_RESERVATIONS, {name: type(free)(-1)}, f"{name}_not_negative") for name, free in FREE.items()),
    (RUN_RESERVATIONS, {"holder": " "}, "holder_not_blank"),
    (tables.SAMPLES, {"sample_id": ""}, "sample_id_not_blank"),
    (tables.SAMPLES, {"sample_hash": "x"}, "sample_hash_is_sha256"),
    (tables.SAMPLES, {"position": -1}, "position_not_negative"),
    (tables.SNAPSHOTS, {"snapshot_id": "s"}, "snapshot_id_is_sha256"),
    (tables.SNAPSHOTS, {"definition_hash": ""}, "definition_hash_is_sha256"),
]


def test_what_may_be_is_kept() -> None:
    assert [(each.table, values) for each, values in KEPT if broken_by(each, **values)] == []


@pytest.mark.parametrize(
    ("contract", "values", "rule"), BROKEN, ids=[f"{each.table} {rule}" for each, _, rule in BROKEN]
)
def test_what_cannot_be_breaks_the_rule_that_says_why(contract: Contract, values: dict[str, Any], rule: str) -> None:
    assert broken_by(contract, **values)[0] == rule


def test_keys_and_what_replaces_a_row() -> None:
    assert tables.QUARANTINE.key == ("batch_id", "row_key")
    assert JUDGE_CANARIES.key == ("suite", "judge", "day")
    assert tables.CALL_FAILURES.key == ("run_id", "prompt_hash", "replicate")
    assert {each.replaced_when for each in (JUDGE_CANARIES, tables.CALL_FAILURES, tables.SNAPSHOTS)} == {None}
    assert {each.replaced_when for each in (FORGOTTEN, RUN_RESERVATIONS)} == {"TRUE"}
    severities = {rule.id: str(rule.severity) for rule in tables.CALLS.rules}
    assert (severities["cached_within_input"], severities["reasoning_in_output"]) == ("warning", "warning")
    assert JUDGE_VERSIONS.former_tables == ("judge_epochs",)
