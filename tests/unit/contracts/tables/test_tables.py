"""Every table, its rules, and rows that break them."""

import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from evalake.contracts import tables
from evalake.contracts.audit import audit
from evalake.contracts.contract import Contract
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables.ledger import SAMPLES, WITHDRAWN_CALLS, SampleRow
from evalake.contracts.tables.metrics import JUDGE_CANARIES, JUDGE_VERSIONS
from evalake.contracts.tables.people import HUMAN_LABELS, ROADMAP_MENTIONS, answered
from evalake.contracts.tables.runs import FORGOTTEN, RUN_ATTEMPTS, RUN_CALLS, RUN_COVERAGE, RUN_RESERVATIONS
from evalake.suites.registry import all_contracts
from tests.unit.contracts.tables.rows import BEFORE, NOON, SHA, broken_by, sound

# The tables say what they are, completely and without contradiction.


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_every_table_and_column_is_described(contract: Contract) -> None:
    assert contract.description.endswith(".")
    assert contract.row.__doc__
    for column in contract.columns:
        assert len(column.description) > 4, column.name


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_keys_are_texts_or_whole_numbers(contract: Contract) -> None:
    for name in contract.key:
        assert contract.column[name].base in (str, int)


def test_tables_have_names_of_their_own() -> None:
    names = [contract.table for contract in all_contracts()]
    assert len(set(names)) == len(names)
    assert {"samples", "calls", "call_failures", "run_items", "runs"} <= set(names)
    assert {"metric_snapshots", "snapshots", "contract_checks", "quarantine"} <= set(names)


def test_only_the_ledger_may_repeat_a_key() -> None:
    assert [contract.table for contract in all_contracts() if contract.append_only] == ["calls"]
    for contract in all_contracts():
        unique = [rule.parameters["columns"] for rule in contract.table_rules if rule.id == "key_unique"]
        assert unique == ([] if contract.append_only else [contract.key])


@pytest.mark.parametrize("contract", all_contracts(), ids=lambda contract: contract.table)
def test_a_pickled_contract_is_whole_without_its_row_model(contract: Contract) -> None:
    written = pickle.dumps(contract)
    assert contract.row.__name__.encode() in written
    assert not contract.table.startswith("command_guard") or b"suites.command_guard" not in written
    read = pickle.loads(written)
    assert read.columns == contract.columns
    assert (read.rules, read.key, read.schema_version) == (contract.rules, contract.key, contract.schema_version)


# People's answers: one row a question, and lakes of the first schema are brought to that.

WORD = {"label_id": SHA, "annotator": "ann"}


def test_each_answer_is_a_row_of_its_own_in_words_or_as_a_score() -> None:
    rows = answered(WORD, {"right": True, "kind": "bonus", "points": 3, "share": 0.5, "open": None})
    assert [(row["question"], row["answer"], row["score"]) for row in rows] == [
        ("right", "yes", None),
        ("kind", "bonus", None),
        ("points", None, 3.0),
        ("share", None, 0.5),
    ]
    assert len({row["label_id"] for row in rows}) == 4
    assert {row["annotator"] for row in rows} == {"ann"}


def test_the_same_word_has_the_same_ids() -> None:
    first, second = (answered(WORD, {"right": value})[0]["label_id"] for value in (True, False))
    assert first == second  # so that a later answer takes the earlier one's place


def test_a_chance_of_zero_cannot_have_drawn_anything() -> None:
    assert broken_by(HUMAN_LABELS, inclusion_probability=None) == []
    assert broken_by(HUMAN_LABELS, inclusion_probability=0.0) == ["drawn_with_some_chance"]
    assert broken_by(HUMAN_LABELS, inclusion_probability=1.1) == ["inclusion_probability_is_share"]


# What each shared table takes and refuses: a sound row with some values of its own, and the rules that it breaks.

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


# A dataset version has samples, each with a name and a place of its own.


def test_a_dataset_without_samples_is_none() -> None:
    results = {result.rule_id: result.passed for result in audit(conform([], SAMPLES), SAMPLES).results}
    assert not results["not_empty"]


def test_its_row_model_is_closed_frozen_and_strict() -> None:
    values = sound(SAMPLES, position=0)
    made = SampleRow(**values)
    assert made.position == 0
    with pytest.raises(ValidationError):
        SampleRow(**{**values, "position": "0"})
    with pytest.raises(ValidationError):
        SampleRow(**values, extra="x")  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        SampleRow(**{name: value for name, value in values.items() if name != "target"})
    with pytest.raises(ValidationError):
        made.label = "other"  # type: ignore[misc]
