"""The embedded auditor finds patterns and not their guarded forms, and no source wears it out."""

import json

import pytest

from evalake.models.request import BaselineRefusedError
from evalake.sdk.sample import delimit_untrusted
from evalake.suites.solidity_audit.baselines import BASELINES
from evalake.suites.solidity_audit.baselines.solidity_patterns import audit

HEAD = """pragma solidity ^0.8.20;
contract C {
    mapping(address => uint256) public balances;
    address public owner;
"""

CASES = {
    "reentrancy": (
        "function take() external { (bool ok, ) = msg.sender.call{value: 1}(''); require(ok); balances[a] = 0; }",
        "function take() external { balances[a] = 0; (bool ok, ) = msg.sender.call{value: 1}(''); require(ok); }",
    ),
    "tx_origin_authentication": (
        "function f() external { require(tx.origin == owner); }",
        "function f() external { require(tx.origin == msg.sender); }",
    ),
    "access_control": (
        "function give(address to) external { owner = to; }",
        "function give(address to) external { require(msg.sender == owner); owner = to; }",
    ),
    "unchecked_return_value": (
        "function pay(address payable a) external { a.send(1); }",
        "function pay(address payable a) external { require(a.send(1)); }",
    ),
    "weak_randomness": (
        "function roll() external view returns (uint256) { return uint256(keccak256(abi.encode(block.number))); }",
        "function roll() external view returns (uint256) { return block.timestamp + 6; }",
    ),
    "integer_overflow": (
        "function f(uint256 a) external { unchecked { balances[msg.sender] -= a; } }",
        "function f(uint256 a) external { balances[msg.sender] -= a; }",
    ),
    "delegatecall_injection": (
        "function run(address to, bytes calldata d) external { (bool ok, ) = to.delegatecall(d); require(ok); }",
        "function run(address to, bytes calldata d) external onlyOwner { (bool ok, ) = to.delegatecall(d); a(ok); }",
    ),
}


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
