"""Starter contracts, their truth, their attacks, and the suite over them."""

import json
import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.sdk import Sample
from evalake.suites.solidity_audit.contract import FINDINGS, RESULTS
from evalake.suites.solidity_audit.sources.read import read_contract
from evalake.suites.solidity_audit.suite import SUITE
from evalake.suites.solidity_audit.truth import GroundTruth, as_sample, normalised, truth_of
from tests.cases import cases_beside
from tests.unit.suites.declared import converse_with_baselines
from tests.unit.suites.solidity_audit.support import TRUTH, sample

CASES = cases_beside(__file__, "starter.json")

# The solidity_audit starter data is complete, consistent and does not give its answers away.

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


# Ground truth is kept as a sample's target, types and severities in one spelling.


def test_a_sample_is_made_of_what_is_known_and_gives_it_back() -> None:
    made = as_sample("d", "box", "contract Box {}", TRUTH, "pair", "a note")
    assert (made.label, made.category, made.severity, made.difficulty) == ("vulnerable", "reentrancy", "high", "1")
    assert (made.cluster, made.note, made.input) == ("pair", "a note", "contract Box {}")
    assert truth_of(made) == TRUTH


def test_another_truth_makes_another_sample() -> None:
    one, other = (sample(TRUTH.model_copy(update={"fix": fix})) for fix in ("Write it first.", "Take a lock."))
    assert one.sample_hash != other.sample_hash


@pytest.mark.parametrize(
    ("known", "named"),
    [
        ({"is_vulnerable": True, "fix": "half a pair \ud800"}, "fix"),
        ({"is_vulnerable": True, "vulnerable_functions": ["a\x00"]}, "cannot be stored"),
        ({"is_vulnerable": True, "vulnerable_lines": [0]}, "vulnerable_lines"),
        ({"is_vulnerable": True, "difficulty_tier": -1}, "difficulty_tier"),
        ({"is_vulnerable": 1}, "is_vulnerable"),
        ({"vulnerability_type": "dos"}, "is_vulnerable"),
        ({"is_vulnerable": True, "mood": "good"}, "mood"),
    ],
)
def test_a_truth_of_another_form_is_refused(known: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        GroundTruth.model_validate(known)


# The suite as one object: by its own baselines starter data becomes rows that keep their contracts.


@pytest.fixture(scope="module")
def twins() -> dict[str | None, Sample]:
    """The first pair of the starter data, by label."""
    return {sample.label: sample for sample in SUITE.data.read(*SUITE.data.starter).samples[:2]}


@pytest.mark.parametrize("label", ["vulnerable", "safe"])
@pytest.mark.parametrize("model", SUITE.conversation.default_models)
@pytest.mark.parametrize("judge", ["baseline/overlap-judge", "baseline/wording-judge"])
def test_starter_contracts_come_to_rows_that_keep_their_contracts(
    twins: dict[str | None, Sample], label: str, model: str, judge: str
) -> None:
    sample = twins[label]
    item, answered = converse_with_baselines(SUITE, sample, model, judge)
    assert len(answered) == 2, "baselines answer in the form, and repair nothing"
    rows = SUITE.scoring.score(item, answered, SUITE.options)
    for contract in SUITE.contracts:
        landed = conform([{**row, "landed_by_run": "r", "origin": "call"} for row in rows[contract.table]], contract)
        assert audit(landed, contract).bad.is_empty()
    (row,) = rows[RESULTS.table]
    assert (row["judge_error"], row["subject_error"], row["repaired"]) == (None, None, False)
    assert row["is_vulnerable"] is truth_of(sample).is_vulnerable is (label == "vulnerable")
    assert row["total_findings"] == len(rows[FINDINGS.table])


# The suite's words: findings are valid or invalid, each has its column, and names are spelled one way.


@pytest.mark.parametrize(("name", "spelled"), CASES["words"])
def test_types_and_severities_are_lower_case_words_joined_by_underscores(name: str, spelled: str) -> None:
    assert normalised(name) == spelled
