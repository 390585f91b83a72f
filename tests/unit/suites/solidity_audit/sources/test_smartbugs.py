"""A SmartBugs checkout is read with its labels, and shown without them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalake.sdk import Item
from evalake.suites.solidity_audit.conversation import converse
from evalake.suites.solidity_audit.prompts import PROMPT_TYPES
from evalake.suites.solidity_audit.sources.read import neutral, read_dataset
from evalake.suites.solidity_audit.truth import truth_of


def write_smartbugs(folder: Path, entries: Any, sources: dict[str, str]) -> None:
    (folder / "vulnerabilities.json").write_text(json.dumps(entries), encoding="utf-8")
    for place, text in sources.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text, encoding="utf-8")


def test_a_smartbugs_checkout_is_read_without_its_answers(tmp_path: Path) -> None:
    text = (
        "/*\n * @vulnerable_at_lines: 6\n */\ncontract IntegerOverflowAdd {\n    uint public n; // counter\n"
        "    // <yes> <report> ARITHMETIC\n    function add(uint v) public { n += v; } string s = '// kept';\n}\n"
    )
    entry = {"path": "dataset/arithmetic/a.sol", "vulnerabilities": [{"lines": [7], "category": "arithmetic"}]}
    outside = {"path": "../secret.sol", "vulnerabilities": [{"lines": [1], "category": "x"}]}
    write_smartbugs(tmp_path, [entry, outside, {"path": 3}, "text"], {"dataset/arithmetic/a.sol": text})
    (tmp_path.parent / "secret.sol").write_text("contract S {}", encoding="utf-8")
    dataset = read_dataset(str(tmp_path))
    (sample,) = dataset.samples
    assert truth_of(sample).vulnerable_functions == ["add"]
    assert len(sample.input.split("\n")) == len(text.split("\n"))
    assert sample.input.split("\n")[6].strip().startswith("function add(uint v)")
    assert "'// kept'" in sample.input
    for telling in ("yes", "report", "ARITHMETIC", "vulnerable_at", "Overflow", "counter"):
        assert telling not in sample.input
    assert len(dataset.skipped) == 3


@pytest.mark.parametrize("place", ["a\0b.sol", "x" * 5000, "\ud800.sol", "folder", "../" * 400])
def test_a_smartbugs_label_of_no_possible_file_is_left_out_alone(tmp_path: Path, place: str) -> None:
    marks = [{"lines": [1], "category": "arithmetic"}]
    entries = [{"path": path, "vulnerabilities": marks} for path in ("folder/a.sol", place)]
    write_smartbugs(tmp_path, entries, {"folder/a.sol": "contract A { function f() public {} }"})
    dataset = read_dataset(str(tmp_path))
    assert len(dataset.samples) == 1
    assert [left.reason for left in dataset.skipped] == ["the contract's file is missing or not text"]


@pytest.mark.parametrize(
    "text", ["", "/*", "//", '"', "'", "/* a \n b", '"\\', 'a /* b */ c // d\n"/* e */"', "\r\n//\r\n"]
)
def test_blanking_keeps_every_line_where_it_is(text: str) -> None:
    lines = text.replace("\r\n", "\n").split("\n")
    assert len(neutral(text).split("\n")) == len(lines)


TELLING = re.compile(r"reentr|overflow|underflow|insecure|vulnerab|exploit|frontrun|phish", re.IGNORECASE)

LABELS = re.compile(r"<yes>|<report>|vulnerable_at_lines|@source|@author|//|/\*")


@pytest.mark.real_data
def test_no_smartbugs_label_leaks_into_any_prompt(real_data: Path) -> None:
    folder = real_data / "smartbugs_curated"
    dataset = read_dataset(str(folder))
    assert len(dataset.samples) == 143
    assert dataset.skipped == ()
    for sample in dataset.samples:
        place = sample.sample_id.removeprefix("smartbugs_curated/")
        original = (folder / "dataset" / f"{place}.sol").read_text(encoding="utf-8-sig")
        assert len(sample.input.split("\n")) == len(original.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
        for prompt_type in PROMPT_TYPES:
            request = converse(Item(sample, "model", "judge", prompt_type), [], {})
            assert request is not None
            prompt = request.messages[1]["content"]
            code = re.sub(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", "", prompt)
            assert not LABELS.search(code), sample.sample_id
            words = (sample.category or "").replace("_", "[_ ]?")
            assert not re.search(words, prompt, re.IGNORECASE) or sample.category == "other", sample.sample_id
            assert not TELLING.search(prompt), sample.sample_id
