"""Sources are read by what they are: tables by their columns or a mapping; what is none says what would be one."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.core.errors import SourceError
from evalake.suites.solidity_audit.sources import builder
from evalake.suites.solidity_audit.sources.read import read_dataset
from evalake.suites.solidity_audit.truth import truth_of
from tests.unit.suites.solidity_audit.sources.material import SOURCE


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
    assert [left.reason for left in dataset.skipped] == [builder.NO_CONTRACT, builder.BAD_TRUTH]


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
