"""Baselines of audits and judgements."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.models.request import BaselineRefusedError
from evalake.sdk.sample import delimit_untrusted
from evalake.suites.solidity_audit.baselines import BASELINES
from evalake.suites.solidity_audit.baselines.judges import Material, families, lines_of, read_material
from evalake.suites.solidity_audit.baselines.judges import judge_by_wording as judge_by_words
from evalake.suites.solidity_audit.baselines.patterns import audit, blank, functions
from tests.cases import cases_beside
from tests.unit.suites.solidity_audit.baselines.material import claim, judged

JUDGED = cases_beside(__file__, "judged.json")

# What rule-based judges read of a prompt: its blocks, the audit's findings, the lines and kinds that words name.


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        '{"findings": [' * 50_000,
        "- reentrancy\n" * 20_000,
        '{"findings": [1, null, "x", []]}',
        "\n \n" * 60_000,
    ],
)
def test_no_audit_wears_the_judge_out(text: str) -> None:
    assert len(judged(text)["findings"]) <= 100


def test_line_ranges_without_end_take_no_memory() -> None:
    ranges = " ".join(f"line {1001 * number}-9999999" for number in range(9_000))
    tracemalloc.start()
    try:
        judged(claim(type="reentrancy", location=ranges))
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("line 7", {7}),
        ("Lines 3-5 and line 9", {3, 4, 5, 9}),
        ("lines 3 to 4", {3, 4}),
        ("line 5-3", set()),
        ("L7", set()),
        ("7 lines", set()),
    ],
)
def test_lines_are_those_that_a_text_names(text: str, lines: set[int]) -> None:
    assert lines_of(text) == lines


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("A re-entrant call", {"reentrancy"}),
        ("tx.origin phishing", {"tx_origin_authentication"}),
        ("time_manipulation", {"timestamp_dependence"}),
        ("unchecked arithmetic", {"unchecked_return_value", "integer_overflow"}),
        ("the windows", set()),  # "dos" within a word is none
        ("", set()),
    ],
)
def test_kinds_are_known_by_their_words(text: str, kinds: set[str]) -> None:
    assert families(text) == kinds


def test_a_prompt_without_an_audit_is_no_material() -> None:
    blocks = {"form": "{}", "ground_truth": '{"is_vulnerable": false}', "contract": "1| x", "audit": "fine"}
    whole = [delimit_untrusted(name, text) for name, text in blocks.items()]
    read = read_material([{"role": "user", "content": "\n\n".join(whole)}])
    assert read == Material({}, {"is_vulnerable": False}, "1| x", "fine")
    for lacking in ([{"role": "user", "content": "\n\n".join(whole[:-1])}], []):
        with pytest.raises(BaselineRefusedError):
            read_material(lacking)


# The first embedded judge compares type, place and lines with the truth, and no location wears it out.


@pytest.mark.parametrize(("fields", "kind", "found", "match"), JUDGED["compared"])
def test_findings_are_judged_by_type_place_and_lines(fields: Any, kind: str, found: bool, match: str) -> None:
    told = judged(claim(**fields))
    assert told["findings"][0]["classification"] == kind
    assert (told["target_assessment"]["found"], told["target_assessment"]["type_match"]) == (found, match)
    assert told["overall_verdict"] == {"said_vulnerable": True, "confidence_expressed": 0.8}


@pytest.mark.parametrize(("text", "said", "found"), JUDGED["prose"])
def test_prose_is_judged_by_what_it_names(text: str, said: bool | None, found: bool) -> None:
    told = judged(text)
    assert told["overall_verdict"]["said_vulnerable"] is said
    assert told["target_assessment"]["found"] is found


def test_of_a_safe_contract_every_finding_is_invalid() -> None:
    told = judged(claim(type="reentrancy", location="take()"), {"is_vulnerable": False}, verdict=False)
    assert told.keys() == {"findings"}
    assert told["findings"][0]["classification"] not in ("TARGET_MATCH", "PARTIAL_MATCH", "BONUS_VALID")


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("location", ["a" * 190_000, "a" + " " * 190_000, "a " * 90_000, "$" * 190_000])
def test_no_location_wears_the_judge_out(location: str) -> None:
    assert judged(claim(type="reentrancy", location=location))["findings"][0]["classification"] == "MISCHARACTERIZED"


# Source text is blanked without moving anything, and its functions are found by their braces.


@given(st.text(alphabet=st.sampled_from("function(){};/*\"' \nabc.=[]"), max_size=200))
def test_blanking_moves_nothing_and_functions_lie_in_the_source(source: str) -> None:
    code = blank(source, strings=True)
    assert len(code) == len(source)
    assert [i for i, c in enumerate(code) if c == "\n"] == [i for i, c in enumerate(source) if c == "\n"]
    for function in functions(code):
        assert 1 <= function.first_line <= function.body_line <= function.last_line <= source.count("\n") + 1


SOURCE = """contract C {
    modifier onlyOwner() { _; } // function no() {}
    function declared() external;
    constructor() { x = "}"; }
    function take(uint256 a)
        external
    {
        pay(a);
    }
    receive() external payable {}
    function () payable { y(); }
    function unfinished() { z();
"""


def test_functions_are_those_with_a_body_in_order() -> None:
    listed = functions(blank(SOURCE, strings=True))
    assert [(each.name, each.kind, each.first_line, each.body_line, each.last_line) for each in listed] == [
        ("onlyOwner", "modifier", 2, 2, 2),
        ("constructor", "constructor", 4, 4, 4),
        ("take", "function", 5, 7, 9),
        ("receive", "receive", 10, 10, 10),
        ("fallback", "fallback", 11, 11, 11),
        ("unfinished", "function", 12, 12, 12),
    ]
    assert listed[2].body.strip() == "pay(a);"
    assert "external" in listed[2].header


def test_strings_stay_unless_their_content_is_to_go() -> None:
    line = 'a = "// no comment"; // one'
    assert blank(line).rstrip() == 'a = "// no comment";'
    assert blank(line, strings=True).rstrip() == 'a = "             ";'


# The embedded auditor finds patterns and not their guarded forms, and no source wears it out.

HEAD = """pragma solidity ^0.8.20;
contract C {
    mapping(address => uint256) public balances;
    address public owner;
"""

CASES = cases_beside(__file__, "patterns.json")
"""By kind of vulnerability: a function that has it, and one that guards against it."""


def types(code: str) -> set[str]:
    return {finding["type"] for finding in audit(f"{HEAD}    {code}\n}}\n")}


@pytest.mark.parametrize("kind", CASES)
def test_a_pattern_is_found_and_its_guarded_form_is_not(kind: str) -> None:
    bad, good = CASES[kind]
    assert kind in types(bad)
    assert kind not in types(good)


def test_comments_and_strings_hold_no_code_and_lines_are_those_of_the_source() -> None:
    bad = CASES["tx_origin_authentication"][0]
    assert audit(f'// {bad}\n/* {bad} */\ncontract C {{ string s = "{bad}"; }}') == []
    (finding,) = audit(f"contract C {{\n\n\n/* one\ntwo */\n   {bad}\n}}")
    assert (finding["lines"], finding["location"]) == ([6], "f()")


def test_the_answer_is_the_structured_audit_of_the_fenced_contract() -> None:
    numbered = "\n".join(
        f"{n}| {text}" for n, text in enumerate(["contract C {", CASES["reentrancy"][0], "}"], start=1)
    )
    prompt = f"Audit it.\n{delimit_untrusted('contract', numbered)}"
    told = json.loads(BASELINES["solidity-patterns"]([{"role": "user", "content": prompt}]))
    assert told["verdict"] in ("vulnerable", "safe")
    assert 0 <= told["confidence"] <= 1
    with pytest.raises(BaselineRefusedError, match="no contract"):
        BASELINES["solidity-patterns"]([{"role": "user", "content": "hello"}])


HOSTILE = [
    "",
    "a" * 200_000,
    "a.a" * 60_000,
    ";a.a" * 50_000,
    "owner = " * 30_000,
    "for(" * 50_000,
    " \n" * 100_000,
    "(bool x" * 30_000,
    "now " * 50_000,
    "function a(){" * 15_000,
    "function a() public {}" * 10_000,
    "mapping(" * 30_000,
    "contract C { uint x; function f() public { " + "x[x[" * 40_000,
    "for(x.length){" * 10_000,
    "/*" * 100_000,
    '"' * 200_000,
    "{" * 200_000,
    "\x00\ud800\u2028" * 1_000,
]


@pytest.mark.slow
@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_no_source_wears_the_auditor_out(source: str) -> None:
    assert len(audit(source)) <= 20


# The second embedded judge goes by what is said, and no audit wears it out.


@pytest.mark.parametrize(("text", "said", "confidence", "kind"), JUDGED["said"])
def test_the_second_judge_goes_by_what_is_said_not_by_what_is_named(
    text: str, said: bool | None, confidence: float | None, kind: str | None
) -> None:
    told = judged(text, judge=judge_by_words)
    assert told["overall_verdict"] == {"said_vulnerable": said, "confidence_expressed": confidence}
    assert [finding["classification"] for finding in told["findings"]] == ([kind] if kind else [])
    assert told["target_assessment"]["found"] is (kind == "TARGET_MATCH")


def test_the_second_judge_finds_a_target_under_any_name_and_without_its_place() -> None:
    told = judged(claim(type="gas", explanation="the balance is written after ether was sent"), judge=judge_by_words)
    assert told["target_assessment"]["found"] is True
    assert told["target_assessment"]["root_cause_identification"]["score"] == 1.0
    told = judged(claim(type="reentrancy", location="take"), judge=judge_by_words)
    assert told["target_assessment"]["found"] is False


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text", ["1. " + "aB" * 90_000, "a " * 90_000, "1. x(\n" * 30_000, "is " * 60_000, "A" * 190_000]
)
def test_no_audit_wears_the_second_judge_out(text: str) -> None:
    assert len(judged(text, judge=judge_by_words)["findings"]) <= 100
