"""People are asked blind first, about what is worth a look, and beside the truth only what needs it."""

from typing import Any

import pytest

from evalake.suites.solidity_audit.people import in_words
from tests.unit.suites.solidity_audit.people import material
from tests.unit.suites.solidity_audit.support import CONTRACT, SAFE, TRUTH, line, rows_of


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_sheet_tells_nothing_of_the_truth_where_people_must_be_blind(form: Any) -> None:
    named = [
        (f"bank-{n}/{twin}", truth) for n in range(3) for twin, truth in (("vulnerable", TRUTH), ("patched", SAFE))
    ]
    lines = [
        line(truth=truth, judged=material.FOUND if truth is TRUTH else material.MISSED_NOTHING, sample_id=name)
        for name, truth in named
    ]
    results, findings = rows_of(lines)
    lines = material.sheet_of(results, findings, 6)
    text = material.write_sheet(lines, form)
    assert "bank" not in text
    assert "patched" not in text
    assert "cluster" not in text
    labels = material.read_sheet(
        text.replace('"target_found": null', '"target_found": true'), form, "ada", material.WHEN
    )
    assert not labels.refused
    assert {row["sample_hash"] for row in labels.rows} <= {*results["sample_hash"]}
    blind, told = lines[:6], lines[6:]
    for each in blind:
        assert (each["fill_in"], each["contract"], each["audit"]) == ("verdict", CONTRACT, "the audit's words")
        assert each["known_vulnerability"] is None
    assert {each["fill_in"] for each in told} == {"target_found, rcir, ava, fsv", "classification"}
    assert all(each["known_vulnerability"] for each in told)  # a safe contract's audit has neither target nor findings
    assert {each["sample_hash"] for each in told} == {*results.filter("is_vulnerable")["sample_hash"]}


def test_what_is_known_is_told_in_words_beside_the_questions_that_need_it() -> None:
    known = TRUTH.model_copy(update={"vulnerable_lines": [7], "root_cause": "it pays before it books", "fix": None})
    words = in_words(known)
    assert words.splitlines()[0] == f"type: {known.vulnerability_type}"
    assert "line 7" in words
    assert "root cause: it pays before it books" in words
    assert "fix" not in words
    assert in_words(SAFE) == "none is known: the contract counts as safe"


def test_audits_worth_a_look_weigh_more() -> None:
    results, _ = rows_of(material.lines_of_run())
    names = results.select("sample_hash", "sample_id").unique()
    weighed = material.candidates(results, material.NOBODY).join(names, on="sample_hash")
    weights = dict(weighed.select("sample_id", "weight").iter_rows())
    assert weights == {"s0": 1.0, "s1": 5.0, "s2": 4.0, "s3": 3.0}
