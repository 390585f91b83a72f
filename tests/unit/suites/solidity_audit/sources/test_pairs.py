"""Folders of pairs become twins with the truth of each; what is bad among them is named."""

import json
from pathlib import Path

from evalake.suites.solidity_audit.sources import builder
from evalake.suites.solidity_audit.sources.read import read_dataset
from evalake.suites.solidity_audit.truth import truth_of
from tests.unit.suites.solidity_audit.sources.material import SOURCE, truth, write_pair


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
