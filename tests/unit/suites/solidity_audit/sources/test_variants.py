"""Variants: a sample knows its base and transformation, and a parser makes two kinds of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalake.core.errors import SourceError
from evalake.suites.solidity_audit.prompts import render
from evalake.suites.solidity_audit.sources.read import read_dataset
from evalake.suites.solidity_audit.sources.rewrite import NO_COMMENTS, RENAMED, rewrite, tree
from evalake.suites.solidity_audit.sources.rounds import read_folder
from evalake.suites.solidity_audit.sources.sample_folders import base_of
from evalake.suites.solidity_audit.truth import truth_of
from tests.cases import cases_beside
from tests.unit.suites.solidity_audit.sources.rounds_material import write

SOURCE = """\
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0; /* one */ import {Base} from "./Base.sol";
/**
 * The vault of Nomad.
 */
interface IToken { function mint(address who) external; }
contract Vault is Base {
    enum Kind { Open, Shut }
    mapping(address => uint256) public balances; // by owner
    string constant NAME = "// no comment";

    function withdraw(uint256 amount) external {
        (bool ok, ) = msg.sender.call{value: amount}("");
        balances[msg.sender] -= amount; Kind kind = Kind.Open;
        assembly { let z := amount }
    }
    function mint(address who) external override { address(this).call(abi.encodeWithSignature("ping(uint256)", 1)); }
    function ping(uint256) external {}
}
"""


@pytest.mark.parametrize("how", [NO_COMMENTS, RENAMED])
def test_a_rewritten_contract_has_the_same_syntax_tree_once_it_is_undone(how: str) -> None:
    new = rewrite(SOURCE, how)
    old = {now: name for name, now in new.names.items()}
    assert tree(re.sub(r"[A-Za-z_$][\w$]*", lambda match: old.get(match[0], match[0]), new.text)) == tree(SOURCE)
    assert "Nomad" not in new.text
    assert '"// no comment"' in new.text
    before, after = SOURCE.split("\n"), new.text.split("\n")
    line = next(number for number, text in enumerate(before, start=1) if "call{value" in text)
    assert "call{value" in after[new.line_of(line) - 1]
    assert new.lines[new.line_of(line) - 1] == line
    assert after[new.line_of(4) - 1].startswith("interface"), "a comment's line is the next that was kept"


def test_names_of_the_language_of_others_and_of_strings_stay() -> None:
    new = rewrite(SOURCE, RENAMED)
    assert {"Base", "mint", "ping", "call", "sender"}.isdisjoint(new.names)
    assert {"Vault", "withdraw", "amount", "Open", "balances"} <= new.names.keys()
    assert len({*new.names.values()}) == len(new.names)


def test_code_that_is_no_solidity_is_refused_with_its_line() -> None:
    with pytest.raises(SourceError, match="line 2"):
        rewrite("contract Box {\n  event Paid(address index who);\n}\n", RENAMED)


@pytest.mark.parametrize(
    ("name", "value", "base"),
    [
        ("ch_medical_tc_001", {"variant_parent_id": "nc_tc_001"}, "tc_001"),
        ("nc_tc_004", {"variant_parent_id": "sn_tc_004"}, "tc_004"),
        ("sn_tc_027", {"transformation": {"original_id": "tc_027"}}, "tc_027"),
        ("ss_l2_ds_t1_003", {"variant_parent_id": "nc_ds_t1_003"}, "ds_t1_003"),
        ("box_twisted", {"variant_parent_id": "box_plain"}, "box"),
        ("tc_001", {}, "tc_001"),
    ],
)
def test_the_base_is_found_over_all_steps(name: str, value: dict[str, Any], base: str) -> None:
    parents = {"box_plain": "box"} | ({name: value["variant_parent_id"]} if "variant_parent_id" in value else {})
    assert base_of(name, value, parents) == base


TRUTH = {"is_vulnerable": True, "vulnerability_type": "reentrancy", "vulnerable_functions": ["pay"]}
MARKED = "/*LN-1*/ contract Box {\n\n/// safe\n/*LN-2*/   function pay() public {}\n/*LN-3*/ }\n"


NEST = "".join(f"x{n + 1}: &x{n + 1} [{', '.join([f'*x{n}'] * 10)}]\n" for n in range(7))
ROOT = "code_acts:\n- {type: %s, security_function: ROOT_CAUSE}\n"


@pytest.mark.parametrize(
    ("annotation", "act"),
    [
        ("[" * 2000, None),
        (f"reviewed: 2024-02-30\n{ROOT % 'EXT_CALL'}", "ext_call"),
        (f"x0: &x0 [boom]\n{NEST}{ROOT % '*x7'}", None),
    ],
)
def test_odd_annotations_and_lists_spoil_no_sample(tmp_path: Path, annotation: str, act: str | None) -> None:
    files = {
        "contracts/box.sol": "contract Box { function pay() public {} }\n",
        "metadata/box.json": {**TRUTH, "original_subset": "x"},
        "code_acts_annotation/box.yaml": annotation,
        "index.json": {"samples": 120},
        "manifest.json": {"samples": [{"id": "box"}, {"id": [1]}, {}]},
    }
    dataset = read_dataset(str(write(tmp_path / "set", files)))
    assert ([truth_of(each).code_act for each in dataset.samples], dataset.notes) == ([act], ())


def test_a_set_is_read_with_bases_transformations_code_acts_and_lines_by_markers(tmp_path: Path) -> None:
    files = {
        "tc/falseProphet/contracts/fp_tc_001.sol": MARKED,
        "tc/falseProphet/ground_truth/fp_tc_001.json": {**TRUTH, "vulnerable_lines": [2]},
        "tc/falseProphet/metadata/fp_tc_001.json": {
            "variant_type": "false_prophet",
            "variant_parent_id": "tc_001",
            "exploit_name": "Nomad Bridge",
        },
        "tc/original/contracts/tc_001.sol": "contract Box { function pay() public {} }\n",
        "tc/original/metadata/tc_001.json": {**TRUTH, "original_subset": "temporal_contamination"},
        "tc/original/code_acts_annotation/tc_001.yaml": (
            "code_acts:\n- {type: DECLARATION, security_function: BENIGN}\n"
            "- {type: EXT_CALL, vulnerable: {security_function: ROOT_CAUSE}}\n"
        ),
    }
    source = str(write(tmp_path / "set", files))
    made, original = read_dataset(source).samples
    assert made.input == "contract Box {\n\n/// safe\n  function pay() public {}\n}\n"
    truth = truth_of(made)
    assert (truth.base, truth.transformation, truth.incident) == ("tc_001", "false_prophet", "Nomad Bridge")
    assert (truth.vulnerable_lines, made.cluster) == ([4], original.cluster)
    assert (truth_of(original).transformation, truth_of(original).code_act) == ("original", "ext_call")
    renamed = read_dataset(f"renamed:{source}")
    first = truth_of(renamed.samples[0])
    assert (first.transformation, first.base, first.vulnerable_lines) == ("false_prophet_renamed", "tc_001", [3])
    assert [truth_of(each).vulnerable_functions for each in renamed.samples] == [["func1"], ["func1"]]


def test_documents_are_shown_by_prompts_with_protocol_context_alone(tmp_path: Path) -> None:
    files = {
        **{"contracts/box.sol": MARKED, "ground_truth/box.json": TRUTH},
        **{"context/box/Token.sol": "contract Token {}\n", "docs/box.md": "It pays."},
    }
    (sample,) = read_dataset(str(write(tmp_path / "set", files))).samples
    shown = {
        kind: render(sample.input, "m", kind).messages[-1]["content"]
        for kind in ("direct", "chain_of_thought", "protocol_context", "protocol_context_chain_of_thought", "knowledge")
    }
    assert {kind for kind, text in shown.items() if "It pays." in text} == {
        *("protocol_context", "protocol_context_chain_of_thought")
    }
    assert all("contract Token" in text for text in shown.values())


def test_results_of_slither_and_mythril_are_audits_by_models_of_these_names(tmp_path: Path) -> None:
    slither, mythril = cases_beside(__file__, "tools.json").values()
    files = {
        "ground_truth/box.json": {**TRUTH, "root_cause": "It pays first.", "fix": "Write the balance first."},
        "slither/box.json": slither,
        "tools/mythril_box.json": mythril,
        "tools/bag.slither.json": slither,
        "tools/box.mythril.json": {"success": False, "error": "solc 0.4 is missing", "issues": []},
    }
    folder = read_folder(write(tmp_path / "round", files))
    assert folder is not None
    items = {recorded.item.model: recorded for _, recorded in folder.lines}
    assert items.keys() == {"slither", "mythril"}
    judged = {model: json.loads(each.replies[1].text or "") for model, each in items.items()}
    assert {model: each["target_assessment"]["found"] for model, each in judged.items()} == {
        "slither": True,
        "mythril": False,
    }
    scores = judged["slither"]["target_assessment"]
    assert scores["root_cause_identification"]["score"] > 0
    assert scores["fix_suggestion_validity"] is None  # which no tool suggests
    assert len(json.loads(items["slither"].replies[0].text or "")["findings"]) == 1
    reasons = {out.where: out.reason for out in folder.skipped}
    assert "solc 0.4 is missing" in reasons["tools/box.mythril.json"]
    assert "ground truth" in reasons["tools/bag.slither.json"]
