"""Recorded audits of three models, for people to look at."""

import json

FOUND = {"good": 9, "fair": 6, "poor": 2}
"""How many of ten targets each model finds."""


def judged(sample: int, model: str, found: bool) -> str:
    """One recorded audit of a vulnerable contract, whose judge did or did not see the target found."""
    finding = {
        "finding_id": 1,
        "classification": "TARGET_MATCH" if found else "HALLUCINATED",
        "matches_target": found,
        "is_valid_concern": found,
        "vulnerability_type_claimed": "reentrancy",
        "severity_claimed": "high",
        "location_claimed": "withdraw()",
    }
    score = {"score": 0.9} if found else None
    target = {"found": found, "finding_id": 1 if found else None, "type_match": "exact" if found else "not_mentioned"}
    reasoning = dict.fromkeys(("root_cause_identification", "attack_vector_validity", "fix_suggestion_validity"), score)
    line = {
        "suite": "solidity_audit",
        "sample_id": f"s{sample}",
        "model": model,
        "judge": "judge",
        "prompt_type": "direct",
        "replicate": 0,
        "ground_truth": {
            "is_vulnerable": True,
            "vulnerability_type": "reentrancy",
            "severity": "high",
            "vulnerable_functions": ["withdraw"],
            "vulnerable_lines": [],
            "difficulty_tier": 1,
        },
        "prediction": None,
        "judgement": {
            "overall_verdict": {"said_vulnerable": True, "confidence_expressed": 0.9},
            "findings": [finding],
            "target_assessment": {**target, **reasoning},
        },
        "judge_error": None,
    }
    return json.dumps(line)
