"""Folders of contracts with their truths beside them are datasets; what is no sample is counted by reason."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from evalake.suites.solidity_audit.sources.read import read_dataset
from evalake.suites.solidity_audit.truth import truth_of
from tests.unit.suites.solidity_audit.sources.rounds_material import write

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
