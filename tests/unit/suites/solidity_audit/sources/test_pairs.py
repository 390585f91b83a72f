"""Sources of contracts: pairs, tables, folders and SmartBugs."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.core.errors import SourceError
from evalake.sdk import Item
from evalake.suites.solidity_audit import sources
from evalake.suites.solidity_audit.prompts import converse
from evalake.suites.solidity_audit.sources.read import neutral, read_dataset
from evalake.suites.solidity_audit.truth import PROMPT_TYPES, GroundTruth, truth_of
from tests.unit.suites.solidity_audit.sources.material import SOURCE, truth, write_pair
from tests.unit.suites.solidity_audit.sources.rounds_material import write

# Folders of pairs become twins with the truth of each; what is bad among them is named.


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
    for reason in (sources.UNKNOWN_SEVERITY, sources.BAD_TRUTH, sources.CONTRADICTION):
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
    assert [left.reason for left in dataset.skipped] == [sources.BAD_TRUTH] * 2
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


# What a source gives becomes a sample, or is left out for a stated reason.


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
    taken = sources.AuditBuilder("d")
    taken.add_material("here", sources.Material(SOURCE, flawed, "id"))
    assert [left.reason for left in taken.skipped] == [sources.BAD_TRUTH]


def test_a_patched_twin_has_no_severity() -> None:
    taken = sources.AuditBuilder("d")
    taken.add_material("here", sources.Material(SOURCE, {"is_vulnerable": False, "severity": "high"}, "id"))
    assert [each.severity for each in taken.samples] == [None]


# Sources are read by what they are: tables by their columns or a mapping; what is none says what would be one.


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "csv"])
def test_tables_are_read_alike(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"contract": SOURCE, "is_vulnerable": "true", "vulnerability_type": "reentrancy", "severity": "low",
         "vulnerable_functions": '["take"]', "vulnerable_lines": "2, 3", "difficulty_tier": "1", "sample_id": "one"},
        {"contract": "contract B {}", "is_vulnerable": "safe", "vulnerability_type": None, "severity": None,
         "vulnerable_functions": None, "vulnerable_lines": None, "difficulty_tier": None, "sample_id": None},
        {"contract": None, "is_vulnerable": "true", "vulnerability_type": "x", "severity": None,
         "vulnerable_functions": None, "vulnerable_lines": None, "difficulty_tier": None, "sample_id": None},
        {"contract": "contract C {}", "is_vulnerable": None, "vulnerability_type": "x", "severity": None,
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
    assert [left.reason for left in dataset.skipped] == [sources.NO_CONTRACT, sources.BAD_TRUTH]


def test_columns_can_be_mapped(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text(json.dumps({"code": SOURCE, "kind": "reentrancy", "bug": 1}) + "\n", encoding="utf-8")
    mapping = "contract=code&vulnerability_type=kind&is_vulnerable=bug&is_vulnerable.true=1"
    assert read_dataset(f"{file}?{mapping}").samples[0].category == "reentrancy"


@pytest.mark.parametrize("content", ["", "not json\n", '{"contract": "x\\u0000", "is_vulnerable": false}\n'])
def test_a_table_without_a_usable_contract_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match="holds no contract that can be used"):
        read_dataset(str(file))


def test_what_is_no_source_is_refused_with_what_would_be_one(tmp_path: Path) -> None:
    for source in (str(tmp_path / "missing"), str(tmp_path)):
        with pytest.raises(SourceError, match="ground_truth"):
            read_dataset(source)


# Folders of contracts with their truths beside them are datasets; what is no sample is counted by reason.

CODE = "contract Box {\n  function pay() public {}\n}\n"
TRUTH: dict[str, Any] = {
    "is_vulnerable": True,
    "vulnerability_type": "reentrancy",
    "severity": "high",
    "vulnerable_functions": ["pay"],
    "vulnerable_lines": [2],
}


def test_truth_and_metadata_describe_a_contract_and_its_base(tmp_path: Path) -> None:
    files = {
        "contracts/sn_box.sol": CODE,
        "ground_truth/sn_box.json": TRUTH,
        "metadata/sn_box.json": {"variant_parent_id": "box", "difficulty_tier": 3, "severity": "unknown"},
    }
    (sample,) = read_dataset(str(write(tmp_path / "set", files))).samples
    assert (sample.sample_id, sample.cluster, sample.input) == ("set/sn_box", "box", CODE)
    assert (sample.severity, sample.difficulty, truth_of(sample).vulnerable_lines) == ("high", "3", [2])


def test_files_of_other_systems_are_read_as_they_are_written_there(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", {"contracts/box.sol": CODE, "ground_truth/box.json": TRUTH})
    expected = read_dataset(str(folder)).samples
    truth = (folder / "ground_truth" / "box.json").read_text().replace(",", ",\r\n")
    for encoding in ("utf-8-sig", "utf-16"):
        (folder / "ground_truth" / "box.json").unlink(missing_ok=True)
        (folder / "ground_truth" / "box.JSON").write_bytes(truth.encode(encoding))
        assert read_dataset(str(folder)).samples == expected


def test_what_is_no_sample_is_counted_by_reason(tmp_path: Path) -> None:
    files = {
        **{f"tier1/contracts/{name}": f"{CODE}// {name}" for name in ("box.sol", "box.sol.bak", "bag_backup.sol")},
        "tier1/contracts/alone.sol": CODE,
        "tier1/contracts/NOTES.md": "Notes.",
        "tier1/ground_truth/box.json": TRUTH,
        "tier1/ground_truth/gone.json": TRUTH,
        "tier2/contracts/bag.sol": CODE,
        "tier2/metadata/bag.json": {**TRUTH, "is_vulnerable": False, "severity": "unknown"},
        "manifest.json": {"selected_samples": [{"id": "box"}, {"id": "other"}]},
    }
    dataset = read_dataset(str(write(tmp_path / "set", files)))
    assert [(sample.sample_id, sample.label) for sample in dataset.samples] == [
        *(("set/tier1/box", "vulnerable"), ("set/tier2/bag", "safe"))
    ]
    assert Counter(out.reason for out in dataset.skipped) == {
        "backup file": 2,
        "contract without ground truth": 1,
        "not a contract": 1,
        "ground truth without contract": 1,
    }
    assert dataset.notes == ("manifest.json lists 2 samples: 1 of them are not here, 1 others are",)


def test_files_and_documents_of_a_sample_are_one_text_whose_lines_count_on(tmp_path: Path) -> None:
    files = {
        "contracts/box/Box.sol": CODE,
        "contracts/box/Owned.sol": "contract Owned {}\n",
        "context/box/Token.sol": "contract Token {}\n",
        "docs/box.md": "# Box\nIt pays.",
        "ground_truth/box.json": TRUTH,
    }
    (sample,) = read_dataset(str(write(tmp_path / "set", files))).samples
    lines = sample.input.splitlines()
    assert [lines[line - 1].strip() for line in truth_of(sample).vulnerable_lines] == ["function pay() public {}"]
    assert [line for line in lines if line.startswith("// ")] == [
        *("// File: contracts/box/Box.sol", "// File: contracts/box/Owned.sol", "// File: context/box/Token.sol"),
        *("// Document: docs/box.md", "// # Box", "// It pays."),
    ]


def test_a_listed_file_that_is_missing_or_outside_refuses_the_sample(tmp_path: Path) -> None:
    write(tmp_path, {"secret.sol": "contract Secret {}"})
    files = {
        **{f"contracts/{name}.sol": f"{CODE}// {name}" for name in ("box", "bag", "can")},
        "metadata/box.json": {**TRUTH, "context_contracts": ["context/Gone.sol"]},
        "metadata/bag.json": {**TRUTH, "context_contracts": ["../secret.sol"]},
        "metadata/can.json": json.dumps({key: TRUTH[key] for key in ("vulnerability_type", "severity")})[:-1]
        + ', "vulnerable_function": "pay"}',
    }
    dataset = read_dataset(str(write(tmp_path / "set", files)))
    assert [sample.sample_id for sample in dataset.samples] == ["set/can"]
    assert len(dataset.skipped) == 2
    assert "Secret" not in "".join(sample.input for sample in dataset.samples)
    assert "1 samples place a vulnerability without is_vulnerable: taken as vulnerable" in dataset.notes


# A SmartBugs checkout is read with its labels, and shown without them.


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
