"""Audits as rule-based judges are asked about them, and what the judge answers."""

import json
from typing import Any

from evalake.sdk.sample import delimit_untrusted
from evalake.suites.solidity_audit.baselines.judges import judge_by_overlap as judge

TRUTH = {
    "is_vulnerable": True,
    "vulnerability_type": "reentrancy",
    "vulnerable_functions": ["take"],
    "vulnerable_lines": [5, 6],
    "root_cause": "The balance is written after ether was sent.",
    "attack_scenario": "The receiver calls take again.",
    "fix": "Write the balance before.",
}


def judged(audit_text: str, truth: Any = TRUTH, verdict: bool = True, judge: Any = judge) -> Any:
    form: dict[str, Any] = {"findings": [], **({"overall_verdict": {}} if verdict else {})}
    form |= {"target_assessment": {}} if truth["is_vulnerable"] else {}
    blocks = (
        ("form", json.dumps(form)),
        ("ground_truth", json.dumps(truth)),
        ("contract", "1| x"),
        ("audit", audit_text),
    )
    text = judge([{"role": "user", "content": "\n\n".join(delimit_untrusted(*block) for block in blocks)}])
    assert text is not None
    return json.loads(text)


def claim(**fields: Any) -> str:
    return json.dumps({"verdict": "vulnerable", "confidence": 0.8, "findings": [fields]})
