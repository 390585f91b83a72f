"""The suite as one object: by its own baselines starter data becomes rows that keep their contracts."""

import pytest

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.sdk import Sample
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.suite import SUITE
from evalake.suites.solidity_audit.truth import truth_of
from tests.unit.suites.declared import converse_with_baselines


@pytest.fixture(scope="module")
def twins() -> dict[str | None, Sample]:
    """The first pair of the starter data, by label."""
    return {sample.label: sample for sample in SUITE.data.read(*SUITE.data.starter).samples[:2]}


@pytest.mark.parametrize("label", ["vulnerable", "safe"])
@pytest.mark.parametrize("model", SUITE.conversation.default_models)
@pytest.mark.parametrize("judge", ["baseline/overlap-judge", "baseline/wording-judge"])
def test_starter_contracts_come_to_rows_that_keep_their_contracts(
    twins: dict[str | None, Sample], label: str, model: str, judge: str
) -> None:
    sample = twins[label]
    item, answered = converse_with_baselines(SUITE, sample, model, judge)
    assert len(answered) == 2, "baselines answer in the form, and repair nothing"
    rows = SUITE.scoring.score(item, answered, SUITE.options)
    for contract in SUITE.contracts:
        landed = conform([{**row, "landed_by_run": "r", "origin": "call"} for row in rows[contract.table]], contract)
        assert audit(landed, contract).bad.is_empty()
    (row,) = rows[RESULTS.table]
    assert (row["judge_error"], row["subject_error"], row["repaired"]) == (None, None, False)
    assert row["is_vulnerable"] is truth_of(sample).is_vulnerable is (label == "vulnerable")
    assert row["total_findings"] == len(rows[FINDINGS.table])


def test_a_trivial_auditor_is_right_about_one_twin(twins: dict[str | None, Sample]) -> None:
    right = {}
    for model in ("baseline/always-vulnerable", "baseline/always-safe"):
        for label, sample in twins.items():
            item, answered = converse_with_baselines(SUITE, sample, model, *SUITE.conversation.default_judges)
            right[model, label] = SUITE.scoring.score(item, answered, SUITE.options)[RESULTS.table][0][
                "detection_correct"
            ]
    assert [key for key, correct in right.items() if correct] == [
        ("baseline/always-vulnerable", "vulnerable"),
        ("baseline/always-safe", "safe"),
    ]
