"""The audits with known judgements are of pairs that ship, and each judgement is one that a judge could give."""

import json
import re
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from evalake.core.configuration import Configuration
from evalake.metrics.agreement import agreement_table
from evalake.models.request import Reply
from evalake.sdk import Exchange
from evalake.storage.lake import Lake
from evalake.suites.solidity_audit.calibration import DECISIONS, compare, contract_of, items, read_audits
from evalake.suites.solidity_audit.replies import Judgement
from evalake.suites.solidity_audit.truth import CLASSIFICATIONS
from evalake.tasks.calibrate import accuracy_known, calibrate, calibration_notes
from evalake.tasks.runtime.context import RunContext

AUDITS: list[dict[str, Any]] = read_audits()


def test_there_are_enough_audits_of_every_kind() -> None:
    assert len(AUDITS) >= 110
    assert len({audit["id"] for audit in AUDITS}) == len(AUDITS)
    assert min(Counter(audit["kind"] for audit in AUDITS).values()) >= 10
    classes = {finding["classification"] for audit in AUDITS for finding in audit["judgement"]["findings"]}
    assert classes == {*CLASSIFICATIONS}


def test_a_known_judgement_is_of_the_form_and_without_contradiction() -> None:
    for audit in AUDITS:
        judgement = Judgement.model_validate(audit["judgement"])
        contract = contract_of(audit)
        assert all(word in contract for word in re.findall(r"function \w+", audit.get("added", ""))), audit
        stated = [line for line in audit["audit"].splitlines() if line[0].isdigit()]
        assert len(stated) == len(judgement.findings), audit
        target = judgement.target_assessment
        assert (target is None) is (audit["twin"] == "patched"), audit
        matches = [finding.finding_id for finding in judgement.findings if finding.classification == "TARGET_MATCH"]
        assert matches == ([target.finding_id] if target is not None and target.found else []), audit
        for line, finding in zip(stated, judgement.findings, strict=True):
            if finding.classification == "HALLUCINATED":
                named = [word for word in line.replace("(", " (").split() if f"{word} ()" in line.replace("(", " (")]
                assert not any(f"function {word}(" in contract for word in named)


def accuracy(judgements: list[dict[str, Any]]) -> dict[str, float]:
    """How often a judge who gives these judgements is right, by decision."""
    given = [
        (item, [*audited, Exchange("0" * 64, Reply(json.dumps(judgement)))])
        for (item, audited), judgement in zip(items("judge"), judgements, strict=True)
    ]
    table = agreement_table(compare(given), DECISIONS)
    return dict(table.select("decision", "agreement").iter_rows())


def known() -> list[dict[str, Any]]:
    """The known judgements, placed as the audits are."""
    right = [deepcopy(audit["judgement"]) for audit in AUDITS]
    for audit, judgement in zip(AUDITS, right, strict=True):
        lines = audit["audit"].splitlines()[1:]
        for finding, line in zip(judgement["findings"], lines, strict=True):
            finding["location_claimed"] = line
    return right


def test_a_judge_who_knows_is_right_in_all_ten_decisions() -> None:
    assert accuracy(known()) == dict.fromkeys(DECISIONS, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decision", "spoil"),
    [
        ("verdict", lambda j: j["overall_verdict"].update(said_vulnerable=None)),
        ("confidence", lambda j: j["overall_verdict"].update(confidence_expressed=0.11)),
        ("finding class", lambda j: j["findings"][0].update(classification="PARTIAL_MATCH")),
        ("location", lambda j: j["findings"][0].update(location_claimed="somewhere")),
        ("root cause", lambda j: j["target_assessment"].update(root_cause_identification=None)),
        ("attack vector", lambda j: j["target_assessment"].update(attack_vector_validity=None)),
        ("fix", lambda j: j["target_assessment"].update(fix_suggestion_validity={"score": 0.6})),
        ("type match", lambda j: j["target_assessment"].update(type_match="partial")),
    ],
)
def test_what_a_judge_gets_wrong_shows_in_its_decision_and_in_no_other(decision: str, spoil: Any) -> None:
    judgements = known()
    for audit, judgement in zip(AUDITS, judgements, strict=True):
        if audit["kind"] == "right":
            spoil(judgement)
    wrong = {name for name, share in accuracy(judgements).items() if share < 1}
    assert wrong == {decision}


def test_an_unreadable_judgement_has_everything_wrong() -> None:
    assert set(accuracy([{"verdict": "good"}] * len(AUDITS)).values()) == {0.0}


@pytest.mark.slow
def test_a_report_says_how_a_judge_did_once_it_was_calibrated(tmp_path: Path) -> None:
    context = RunContext("run", "solidity_audit", Lake(str(tmp_path / "lake")), Configuration())
    judge = "baseline/overlap-judge"
    assert calibration_notes(context, [judge, "nobody/asked"]) == []
    table = calibrate(context, judge)
    assert table["decision"].to_list() == list(DECISIONS)
    assert table["n"].min() >= 58  # type: ignore[operator]
    assert 0.5 < table["agreement"].mean() < 1  # type: ignore[operator]
    (note,) = calibration_notes(context, [judge, "nobody/asked"])
    assert note.startswith(f"{judge}, calibrated: right where the right judgement is known: verdict 56% [43–68%], ")
    known = accuracy_known(context, judge)
    assert known is not None
    assert known.equals(table)
    assert accuracy_known(context, "nobody/asked") is None
