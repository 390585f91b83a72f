"""The solidity_audit starter data is complete, consistent and does not give its answers away."""

import json
import re
from collections import Counter
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "datasets" / "solidity_audit"
FILES = ["ground_truth.json", "patched.sol", "vulnerable.sol"]
PAIRS = sorted(path.name for path in FOLDER.glob("pair_*"))
TYPES = {
    "access_control",
    "delegatecall_injection",
    "denial_of_service",
    "flash_loan_governance",
    "front_running",
    "integer_overflow",
    "logic_error",
    "oracle_manipulation",
    "reentrancy",
    "rounding_error",
    "signature_replay",
    "storage_collision",
    "timestamp_dependence",
    "tx_origin_authentication",
    "unchecked_return_value",
    "uninitialized_proxy",
    "weak_randomness",
}
TEXTS = ("root_cause", "attack_scenario", "fix", "description")
GIVEAWAYS = re.compile(
    r"vulnerab|unsafe|insecure|exploit|attack|hack|malicious|patch|flaw|victim|overflow|underflow|front.?run|sandwich"
    r"|replay|drain|steal|manipulat|todo|xxx|swc-|cwe-|safe version|reentrancy|\bre-?enter|\b(bug|bugs|buggy)\b"
    r"|\bfix(ed|es)?\b|\bweak|\bdanger|\brisk|\bsecure|\bbypass",
    re.IGNORECASE,
)
STATE_DECLARATION = re.compile(r"^ {4}\S.*;$")


def ground_truth(pair: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((FOLDER / pair / "ground_truth.json").read_text(encoding="utf-8"))
    return truth


def source(pair: str, twin: str) -> str:
    return (FOLDER / pair / f"{twin}.sol").read_text(encoding="utf-8")


def function_lines(text: str, name: str) -> set[int]:
    """1-based numbers of the lines of the function called `name`, signature and closing brace included."""
    lines = text.splitlines()
    found: set[int] = set()
    for start, line in enumerate(lines):
        if re.match(rf" +function {re.escape(name)}\(", line) and not line.endswith(";"):
            indent = line[: len(line) - len(line.lstrip())]
            end = next(number for number in range(start, len(lines)) if lines[number] == f"{indent}}}")
            found |= set(range(start + 1, end + 2))
    return found


def test_every_folder_holds_one_whole_pair() -> None:
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == PAIRS
    for pair in PAIRS:
        assert re.fullmatch(r"pair_\d{2}", pair)
        assert sorted(path.name for path in (FOLDER / pair).iterdir()) == FILES


def test_the_collection_spreads_over_types_tiers_and_severities() -> None:
    truths = [ground_truth(pair) for pair in PAIRS]
    types = Counter(truth["vulnerability_type"] for truth in truths)
    tiers = Counter(truth["difficulty_tier"] for truth in truths)
    severities = Counter(truth["severity"] for truth in truths)
    assert len(PAIRS) >= 26
    assert set(types) == TYPES
    assert sum(count >= 2 for count in types.values()) >= 12
    assert set(tiers) == {1, 2, 3, 4}
    assert min(tiers.values()) >= 4
    assert set(severities) == {"critical", "high", "medium", "low"}


@pytest.mark.parametrize("pair", PAIRS)
def test_ground_truth_has_exactly_the_documented_fields(pair: str) -> None:
    truth = ground_truth(pair)
    assert list(truth) == [
        "pair_id",
        "vulnerability_type",
        "severity",
        "difficulty_tier",
        "vulnerable_functions",
        "vulnerable_lines",
        *TEXTS,
    ]
    assert truth["pair_id"] == pair
    assert all(len(truth[text]) >= 20 and truth[text].strip() == truth[text] for text in TEXTS)
    assert "\n" not in truth["description"]


@pytest.mark.parametrize("pair", PAIRS)
def test_lines_and_functions_are_in_the_vulnerable_file(pair: str) -> None:
    truth, text = ground_truth(pair), source(pair, "vulnerable")
    lines = text.splitlines()
    spans = {name: function_lines(text, name) for name in truth["vulnerable_functions"]}
    assert spans
    assert all(spans.values()), f"a named function is not in the file: {spans}"
    numbers = truth["vulnerable_lines"]
    assert numbers == sorted(set(numbers))
    assert numbers[0] >= 1
    assert numbers[-1] <= len(lines)
    inside = set.union(*spans.values())
    assert inside & set(numbers)
    for number in set(numbers) - inside:
        assert STATE_DECLARATION.match(lines[number - 1]), f"line {number} is in no named function"


@pytest.mark.parametrize("pair", PAIRS)
def test_the_twin_differs_where_the_flaw_is(pair: str) -> None:
    truth = ground_truth(pair)
    vulnerable, patched = source(pair, "vulnerable").splitlines(), source(pair, "patched").splitlines()
    flaw = range(truth["vulnerable_lines"][0] - 2, truth["vulnerable_lines"][-1] + 1)
    changed = [
        line
        for tag, start, end, _, _ in SequenceMatcher(None, vulnerable, patched, autojunk=False).get_opcodes()
        if tag != "equal"
        for line in range(start, max(end, start + 1))
    ]
    assert set(changed) & set(flaw), f"the twin changes lines {changed}, the flaw is in {flaw}"


@pytest.mark.parametrize("pair", PAIRS)
def test_twins_look_alike(pair: str) -> None:
    vulnerable, patched = source(pair, "vulnerable"), source(pair, "patched")

    def contracts(text: str) -> list[str]:
        return re.findall(r"^contract (\w+)", text, re.MULTILINE)

    def head(text: str) -> list[str]:
        return text.splitlines()[:2]

    assert contracts(vulnerable) == contracts(patched) != []
    assert head(vulnerable) == head(patched)


@pytest.mark.parametrize("twin", ["vulnerable", "patched"])
@pytest.mark.parametrize("pair", PAIRS)
def test_contract_text_stands_alone_and_gives_nothing_away(pair: str, twin: str) -> None:
    text = source(pair, twin)
    assert text.startswith("// SPDX-License-Identifier: Apache-2.0\npragma solidity ^0.")
    assert text.isascii()
    assert text.endswith("}\n")
    assert 40 <= len(text.splitlines()) <= 180
    assert all(len(line) <= 120 and line == line.rstrip() for line in text.splitlines())
    assert not re.search(r"^\s*import\b", text, re.MULTILINE)
    code = text.replace("nonReentrant", "")
    assert not GIVEAWAYS.search(code), GIVEAWAYS.search(code)
    for comment in re.findall(r"//.*", text)[1:]:
        assert comment.startswith("///"), "only NatSpec comments are used"


def test_the_readme_counts_what_is_there() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    truths = [ground_truth(pair) for pair in PAIRS]
    rows = dict(re.findall(r"^\| `?(\w+)`? \| (\d+) \|$", readme, re.MULTILINE))
    counted: Counter[str] = Counter()
    for field in ("vulnerability_type", "difficulty_tier", "severity"):
        counted.update(str(truth[field]) for truth in truths)
    assert {name: int(count) for name, count in rows.items()} == counted
