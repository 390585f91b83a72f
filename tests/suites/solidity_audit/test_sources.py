"""Sources become samples with a ground truth, or say what they lack; no label reaches a prompt."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.errors import SourceError
from suites.base import Item
from suites.solidity_audit.conversation import converse
from suites.solidity_audit.prompts.subject import PROMPT_TYPES
from suites.solidity_audit.sources import builder
from suites.solidity_audit.sources.read import read_dataset
from suites.solidity_audit.sources.smartbugs import neutral
from suites.solidity_audit.truth import GroundTruth, truth_of

SOURCE = "contract Vault {\n    function take() public { msg.sender.transfer(1); }\n}\n"


def truth(**more: Any) -> dict[str, Any]:
    return {"pair_id": "p", "vulnerability_type": "Access Control", "severity": "high", "difficulty_tier": 2} | more


def write_pair(folder: Path, name: str, given: Any, *, patched: bool = True, text: str = SOURCE) -> None:
    pair = folder / name
    pair.mkdir(parents=True)
    (pair / "ground_truth.json").write_text(given if isinstance(given, str) else json.dumps(given), encoding="utf-8")
    (pair / "vulnerable.sol").write_text(text, encoding="utf-8")
    if patched:
        (pair / "patched.sol").write_text(f"// {name}\n{text}", encoding="utf-8")


def test_the_starter_data_is_pairs_of_twins() -> None:
    dataset = read_dataset("starter")
    assert dataset.skipped == ()
    assert len(dataset.samples) == 240
    by_cluster: dict[str | None, list[str | None]] = {}
    for each in dataset.samples:
        by_cluster.setdefault(each.cluster, []).append(each.label)
    assert set(map(tuple, by_cluster.values())) == {("vulnerable", "safe")}
    for each in dataset.samples:
        known = truth_of(each)
        assert known.is_vulnerable is (each.label == "vulnerable")
        assert bool(known.vulnerable_lines) is known.is_vulnerable
        assert (each.category, each.severity) == (known.vulnerability_type, known.severity)


def test_a_folder_of_pairs_is_read_and_what_is_bad_in_it_is_named(tmp_path: Path) -> None:
    write_pair(tmp_path, "a", truth(vulnerable_functions=["take"], vulnerable_lines=[2]))
    write_pair(tmp_path, "b", truth(severity="apocalyptic"), text=SOURCE + "//b")
    write_pair(tmp_path, "c", "{not json", text=SOURCE + "//c")
    write_pair(tmp_path, "d", truth(), patched=False, text=SOURCE + "//d")
    write_pair(tmp_path, "e", truth(surprise=1), text=SOURCE + "//e")
    write_pair(tmp_path, "f", truth(vulnerability_type="reentrancy"), patched=False)
    dataset = read_dataset(str(tmp_path))
    kept = {(each.cluster, each.label) for each in dataset.samples}
    assert kept == {("a", "vulnerable"), ("a", "safe"), ("b", "safe"), ("d", "vulnerable"), ("e", "safe")}
    reasons = [left.reason for left in dataset.skipped]
    for reason in (builder.UNKNOWN_SEVERITY, builder.BAD_TRUTH, builder.CONTRADICTION):
        assert reason in reasons
    assert any("apocalyptic" in left.where for left in dataset.skipped)
    assert any("surprise" in left.where for left in dataset.skipped)
    assert {each.category for each in dataset.samples} == {"access_control", None}


def test_a_contract_of_several_files_is_one_text_with_the_lines_of_its_files(tmp_path: Path) -> None:
    given = truth(vulnerable_functions=["take"], vulnerable_lines={"Vault.sol": [2], "Base.sol": [1]})
    for name, lines in (("a", given["vulnerable_lines"]), ("b", {"Other.sol": [1]}), ("c", {"Base.sol": ["1"]})):
        for twin in ("vulnerable", "patched"):
            (tmp_path / name / twin).mkdir(parents=True)
            (tmp_path / name / twin / "Vault.sol").write_text(SOURCE + f"// {name} {twin}", encoding="utf-8")
            (tmp_path / name / twin / "Base.sol").write_text("contract Base {}\n", encoding="utf-8")
        pair_truth = json.dumps(given | {"vulnerable_lines": lines})
        (tmp_path / name / "ground_truth.json").write_text(pair_truth, encoding="utf-8")
    dataset = read_dataset(str(tmp_path))
    assert [left.reason for left in dataset.skipped] == [builder.BAD_TRUTH] * 2
    vulnerable, safe = (each for each in dataset.samples if each.cluster == "a")
    assert vulnerable.sample_id == f"{tmp_path.name}/a/vulnerable"
    lines_of_text = vulnerable.input.splitlines()
    assert lines_of_text[:3] == ["// File: Base.sol", "contract Base {}", "// File: Vault.sol"]
    assert [lines_of_text[line - 1] for line in truth_of(vulnerable).vulnerable_lines] == [
        "contract Base {}",
        "    function take() public { msg.sender.transfer(1); }",
    ]
    assert safe.input.endswith("// a patched\n")
    assert truth_of(safe).vulnerable_lines == []


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_tables_are_read_alike(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"contract": SOURCE, "is_vulnerable": "true", "vulnerability_type": "reentrancy", "severity": "low",
         "vulnerable_functions": '["take"]', "vulnerable_lines": "2, 3", "difficulty_tier": "1", "sample_id": "one"},
        {"contract": "contract B {}", "is_vulnerable": "safe", "vulnerability_type": None, "severity": None,
         "vulnerable_functions": None, "vulnerable_lines": None, "difficulty_tier": None, "sample_id": None},
        {"contract": None, "is_vulnerable": "true", "vulnerability_type": "x", "severity": None,
         "vulnerable_functions": None, "vulnerable_lines": None, "difficulty_tier": None, "sample_id": None},
        {"contract": "contract C {}", "is_vulnerable": "perhaps", "vulnerability_type": "x", "severity": None,
         "vulnerable_functions": None, "vulnerable_lines": None, "difficulty_tier": None, "sample_id": None},
    ]  # fmt: skip
    file = tmp_path / f"mine.{suffix}"
    frame = pl.DataFrame(rows)
    write: dict[str, Any] = {"jsonl": frame.write_ndjson, "parquet": frame.write_parquet, "csv": frame.write_csv}
    write[suffix](file)
    dataset = read_dataset(str(file))
    assert dataset.name == "mine"
    one, other = dataset.samples
    assert (one.sample_id, one.label, one.category, one.difficulty) == ("one", "vulnerable", "reentrancy", "1")
    assert truth_of(one).vulnerable_lines == [2, 3]
    assert truth_of(one).vulnerable_functions == ["take"]
    assert other.label == "safe"
    assert [left.reason for left in dataset.skipped] == [builder.NO_CONTRACT, builder.BAD_TRUTH]


@pytest.mark.parametrize(
    "flawed",
    [
        {"is_vulnerable": True},
        {"is_vulnerable": True, "vulnerability_type": " "},
        {"is_vulnerable": True, "vulnerability_type": "dos", "fix": ""},
        {"is_vulnerable": False, "vulnerability_type": "dos"},
        {"is_vulnerable": False, "vulnerable_functions": ["f"]},
        {"is_vulnerable": False, "vulnerable_lines": [1]},
    ],
)
def test_ground_truth_that_no_judge_could_be_asked_with_is_left_out(flawed: dict[str, Any]) -> None:
    assert GroundTruth.model_validate(flawed).flaw is not None
    taken = builder.AuditDatasetBuilder("d")
    taken.add_material("here", builder.Material(SOURCE, flawed, "id"))
    assert [left.reason for left in taken.skipped] == [builder.BAD_TRUTH]


def test_a_patched_twin_has_no_severity() -> None:
    taken = builder.AuditDatasetBuilder("d")
    taken.add_material("here", builder.Material(SOURCE, {"is_vulnerable": False, "severity": "high"}, "id"))
    assert [each.severity for each in taken.samples] == [None]


def test_columns_can_be_mapped(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(json.dumps({"code": SOURCE, "kind": "reentrancy", "bug": 1}) + "\n", encoding="utf-8")
    mapping = "contract=code&vulnerability_type=kind&is_vulnerable=bug&is_vulnerable.true=1"
    assert read_dataset(f"{file}?{mapping}").samples[0].category == "reentrancy"


@pytest.mark.parametrize("content", ["", "{}\n", "not json\n", '{"contract": "x\\u0000", "is_vulnerable": false}\n'])
def test_a_table_without_a_usable_contract_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match="holds no contract that can be used"):
        read_dataset(str(file))


def test_what_is_no_source_is_refused_with_what_would_be_one(tmp_path: Path) -> None:
    for source in (str(tmp_path / "missing"), str(tmp_path)):
        with pytest.raises(SourceError, match="ground_truth"):
            read_dataset(source)


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
