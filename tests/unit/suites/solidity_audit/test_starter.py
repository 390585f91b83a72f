"""The solidity_audit starter data is complete, consistent and does not give its answers away."""

import json
import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path
from typing import Any

from evalake.suites.solidity_audit.sources.read import read_contract

FOLDER = Path(__file__).parents[4] / "evalake" / "suites" / "solidity_audit" / "starter"
ONE_FILE = ["ground_truth.json", "patched.sol", "vulnerable.sol"]
SEVERAL_FILES = ["ground_truth.json", "patched", "vulnerable"]
PAIRS = sorted(path.name for path in FOLDER.glob("pair_*"))
TEXTS = ("root_cause", "attack_scenario", "fix", "description")
GIVEAWAYS = re.compile(
    r"vulnerab|unsafe|insecure|exploit|attack|hack|malicious|patch|flaw|victim|overflow|underflow|front.?run|sandwich"
    r"|replay|drain|steal|manipulat|todo|xxx|swc-|cwe-|safe version|reentrancy|\bre-?enter|\b(bug|bugs|buggy)\b"
    r"|\bfix(ed|es)?\b|\bweak|\bdanger|\brisk|\bsecure|\bbypass",
    re.IGNORECASE,
)
STATE_DECLARATION = re.compile(r"^ {4}\S.*;$|^contract .* is .*{$")


def ground_truth(pair: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads((FOLDER / pair / "ground_truth.json").read_text(encoding="utf-8"))
    return truth


def files(pair: str, twin: str) -> dict[str, str]:
    """The texts of one twin by file name."""
    one = FOLDER / pair / f"{twin}.sol"
    paths = [one] if one.is_file() else sorted((FOLDER / pair / twin).iterdir())
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def source(pair: str, twin: str) -> str:
    """The text of one twin, as a model gets it."""
    contract = read_contract(FOLDER / pair, twin)
    assert contract is not None
    return contract.text


def lines_of(pair: str) -> list[int]:
    """The vulnerable lines of the text of the vulnerable twin."""
    contract = read_contract(FOLDER / pair, "vulnerable")
    assert contract is not None
    numbers: list[int] = contract.lines_of(ground_truth(pair)["vulnerable_lines"])
    return numbers


def function_lines(text: str, name: str) -> set[int]:
    """1-based numbers of the lines of the function called `name`, signature and closing brace included."""
    lines = text.splitlines()
    found: set[int] = set()
    for start, line in enumerate(lines):
        if re.match(rf" +(function )?{re.escape(name)}\(", line) and not line.endswith(";"):
            indent = line[: len(line) - len(line.lstrip())]
            end = next(number for number in range(start, len(lines)) if lines[number] == f"{indent}}}")
            found |= set(range(start + 1, end + 2))
    return found


def test_every_folder_holds_one_whole_pair() -> None:
    assert sorted(path.name for path in FOLDER.iterdir() if path.is_dir()) == PAIRS
    for pair in PAIRS:
        assert re.fullmatch(r"pair_\d{2,3}", pair)
        assert sorted(path.name for path in (FOLDER / pair).iterdir()) in (ONE_FILE, SEVERAL_FILES)
        assert sorted(files(pair, "vulnerable")) == sorted(files(pair, "patched")) or len(files(pair, "patched")) == 1


def test_the_collection_spreads_over_types_tiers_and_severities() -> None:
    truths = [ground_truth(pair) for pair in PAIRS]
    types = Counter(truth["vulnerability_type"] for truth in truths)
    tiers = Counter(truth["difficulty_tier"] for truth in truths)
    severities = Counter(truth["severity"] for truth in truths)
    assert len(PAIRS) >= 120
    assert len(types) >= 20
    assert all(count >= 15 for _, count in types.most_common(4))
    assert set(tiers) == {1, 2, 3, 4}
    assert min(tiers.values()) >= 30
    assert set(severities) == {"critical", "high", "medium", "low"}
    assert min(severities.values()) >= 30
    long = [
        pair for pair in PAIRS if len(files(pair, "vulnerable")) > 1 or source(pair, "vulnerable").count("\n") > 400
    ]
    assert len(long) >= 12


def test_ground_truth_has_exactly_the_documented_fields() -> None:
    for pair in PAIRS:
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
        assert truth["pair_id"] == pair, pair
        assert all(len(truth[text]) >= 20 and truth[text].strip() == truth[text] for text in TEXTS), pair
        assert "\n" not in truth["description"], pair


def test_lines_and_functions_are_in_the_vulnerable_file() -> None:
    for pair in PAIRS:
        truth, text = ground_truth(pair), source(pair, "vulnerable")
        lines = text.splitlines()
        spans = {name: function_lines(text, name) for name in truth["vulnerable_functions"]}
        assert spans, pair
        assert all(spans.values()), f"a named function is not in the file: {spans}"
        numbers = lines_of(pair)
        assert numbers == sorted(set(numbers)), pair
        assert numbers[0] >= 1, pair
        assert numbers[-1] <= len(lines), pair
        inside = set.union(*spans.values())
        assert inside & set(numbers), pair
        for number in set(numbers) - inside:
            assert STATE_DECLARATION.match(lines[number - 1]), f"line {number} is in no named function"


def test_the_twin_differs_where_the_flaw_is() -> None:
    for pair in PAIRS:
        numbers = lines_of(pair)
        vulnerable, patched = source(pair, "vulnerable").splitlines(), source(pair, "patched").splitlines()
        flaw = range(numbers[0] - 2, numbers[-1] + 1)
        changed = [
            line
            for tag, start, end, _, _ in SequenceMatcher(None, vulnerable, patched, autojunk=False).get_opcodes()
            if tag != "equal"
            for line in range(start, max(end, start + 1))
        ]
        assert set(changed) & set(flaw), f"the twin changes lines {changed}, the flaw is in {flaw}"


def test_contract_text_stands_alone_and_gives_nothing_away() -> None:
    for pair, twin in product(PAIRS, ("vulnerable", "patched")):
        texts = files(pair, twin)
        most = 180 if len(texts) == 1 else 600
        assert 40 <= sum(len(text.splitlines()) for text in texts.values()) <= most, pair
        for text in texts.values():
            assert text.startswith("// SPDX-License-Identifier: Apache-2.0\npragma solidity ^0."), pair
            assert text.isascii(), pair
            assert text.endswith("}\n"), pair
            assert all(len(line) <= 120 and line == line.rstrip() for line in text.splitlines()), pair
            assert "\n\n\n" not in text, pair
            imported = re.findall(r"^import\b.*", text, re.MULTILINE)
            assert all(re.fullmatch(r'import {[\w, ]+} from "\./\w+\.sol";', line) for line in imported), pair
            assert {line.split('"./')[1].rstrip('";') for line in imported} <= {*texts}, pair
            code = text.replace("nonReentrant", "")
            assert not GIVEAWAYS.search(code), (pair, GIVEAWAYS.search(code))
            for comment in re.findall(r"//.*", text)[1:]:
                assert comment.startswith("///"), "only NatSpec comments are used"
