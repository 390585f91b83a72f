"""`evalake import`: what it prints, what it lands once, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.conftest import Imported
from tests.integration.cli.people import FOUND


def test_json_is_one_object_with_the_promised_fields(imported: Imported) -> None:
    promised = ["run_id", "snapshot_id", "state", "message", "samples", "calls", "rows", "cost_usd", "seconds"]
    assert list(imported.said) == [*promised, "coverage", "differ"]
    assert (imported.said["message"], imported.said["differ"]) == (None, 0)
    assert {each["missing_share"] for each in imported.said["coverage"]} == {0.0}
    assert sum(each["asked"] for each in imported.said["coverage"]) == 40
    assert list(imported.said["calls"]) == ["made", "from_ledger", "failed"]
    assert imported.said["rows"] == {"landed": 40, "already_present": 0, "quarantined": 0}
    assert (imported.said["state"], imported.said["samples"]) == ("completed", 40)


def test_importing_again_is_the_same_run_and_adds_nothing(imported: Imported) -> None:
    again = json.loads(
        evalake_here("import", "results.jsonl", "--suite", "command_guard", "--json", folder=imported.folder).stdout
    )
    assert (again["run_id"], again["snapshot_id"]) == (imported.run, imported.said["snapshot_id"])
    assert again["rows"] == {"landed": 0, "already_present": 40, "quarantined": 0}
    (counts,) = imported.query("select count(*) as n, count(distinct sample_id) as ids from command_guard_results")
    assert counts == {"n": 40, "ids": 40}


def test_bad_lines_are_named_quarantined_and_do_not_stop_the_rest(tmp_path: Path) -> None:
    bad = ["{not json", recorded(1, colour="red"), recorded(2, label="wicked")]
    lines = [recorded(0), *bad, recorded(3), "[]", '{"suite": "x"}']
    (tmp_path / "mixed.jsonl").write_text("\n".join(lines))
    done = evalake_here("import", "mixed.jsonl", "--suite", "command_guard", "--json", folder=tmp_path)
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["rows"] == {"landed": 2, "already_present": 0, "quarantined": 5}
    assert said["state"] == "incomplete"
    refused = {each["model"]: sum(each["refused"].values()) for each in said["coverage"]}
    assert refused == {"openai/gpt-4o-mini": 2, "": 3}
    assert "mixed.jsonl:2" in done.stderr
    reasons = {
        row["origin"]: row["reason"] for row in Imported(tmp_path, {}).query("select origin, reason from quarantine")
    }
    assert set(reasons) == {f"mixed.jsonl:{n}" for n in (2, 3, 4, 6, 7)}
    assert "colour" in reasons["mixed.jsonl:3"]
    assert "label" in reasons["mixed.jsonl:4"]


def test_fields_that_begin_with_expected_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(recorded(0, expected_verdict="BLOCK"))
    assert evalake_here("import", "one.jsonl", "--suite", "command_guard", "--json", folder=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: there is no result in it"),
        (b"\n\n", "is empty: there is no result in it"),
        (b"\xff\xfe\x00", "holds no recorded result"),
        (b"\xef\xbb\xbf", "holds no recorded result"),
    ],
)
def test_a_file_without_a_good_line_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "bad.jsonl").write_bytes(content)
    done = evalake_here("import", "bad.jsonl", "--suite", "command_guard", "--json", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"evalake: bad.jsonl {said}")
    assert not (tmp_path / "lake").exists()


def test_imported_results_are_measured_with_the_options_of_the_configuration(audited: Imported, tmp_path: Path) -> None:
    (tmp_path / "audits.jsonl").write_text((audited.folder / "audits.jsonl").read_text())
    weights = {"f2": 1, "target_detection_rate": 0, "finding_precision": 0, "avg_reasoning": 0, "calibration": 0}
    lines = [f"{name} = {weight}" for name, weight in weights.items()]
    (tmp_path / "evalake.toml").write_text("\n".join(["[suites.solidity_audit.sui_weights]", *lines]))
    done = json.loads(
        evalake_here("import", "audits.jsonl", "--suite", "solidity_audit", "--json", folder=tmp_path).stdout
    )
    shown = evalake_here("metrics", "--run", done["run_id"], "--format", "json", folder=tmp_path).stdout
    values = {(row["metric"], row["model"]): row["value"] for row in json.loads(shown) if row["slice"] == "all"}
    assert [values["sui", model] for model in FOUND] == [values["f2", model] for model in FOUND]
