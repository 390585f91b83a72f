"""The contract refuses a row that contradicts itself, by the rule that says how, and no good one."""

import pytest

from contracts.audit import audit
from suites.solidity_audit.contract import FINDINGS, RESULTS
from tests.suites.solidity_audit.judgements import CONTRADICTIONS, GOOD
from tests.suites.solidity_audit.support import line, rows_of


@pytest.mark.parametrize("rule", CONTRADICTIONS)
def test_each_contradiction_breaks_the_rule_that_names_it(rule: str) -> None:
    results, findings = rows_of([line(judged=CONTRADICTIONS[rule])])
    audited = audit(results, RESULTS)
    assert audited.good.is_empty()
    assert rule in audited.bad["broken"][0]
    assert set(audited.bad["broken"][0]) <= {rule, "calibration_error_is_share"}
    assert findings.is_empty(), "the findings of a refused judgement must not land either"


def test_a_good_judgement_keeps_every_rule() -> None:
    results, findings = rows_of([line(judged=GOOD)])
    assert audit(results, RESULTS).bad.is_empty()
    assert audit(findings, FINDINGS).good.height == 1
