"""`evalake label` and `fit-weights`: people's words go out as sheets, come back as rows, and rank models."""

import csv
import json
import os
from pathlib import Path

import pytest

from tests.cli.command import evalake_here

MODELS = ("good", "fair", "poor")


def judged(sample: int, model: str, found: bool) -> str:
    """One recorded audit of a vulnerable contract, whose judge did or did not see the target found."""
    finding = {
        "finding_id": 1,
        "classification": "TARGET_MATCH" if found else "HALLUCINATED",
        "matches_target": found,
        "is_valid_concern": found,
        "vulnerability_type_claimed": "reentrancy",
        "severity_claimed": "high",
        "location_claimed": "withdraw()",
    }
    score = {"score": 0.9} if found else None
    target = {"found": found, "finding_id": 1 if found else None, "type_match": "exact" if found else "not_mentioned"}
    reasoning = dict.fromkeys(("root_cause_identification", "attack_vector_validity", "fix_suggestion_validity"), score)
    line = {
        "suite": "solidity_audit",
        "sample_id": f"s{sample}",
        "model": model,
        "judge": "judge",
        "prompt_type": "direct",
        "replicate": 0,
        "ground_truth": {
            "is_vulnerable": True,
            "vulnerability_type": "reentrancy",
            "severity": "high",
            "vulnerable_functions": ["withdraw"],
            "vulnerable_lines": [],
            "difficulty_tier": 1,
        },
        "prediction": None,
        "judgement": {
            "overall_verdict": {"said_vulnerable": True, "confidence_expressed": 0.9},
            "findings": [finding],
            "target_assessment": {**target, **reasoning},
        },
        "judge_error": None,
    }
    return json.dumps(line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models on ten audits: the first finds nine targets, the second six, the third two."""
    place = tmp_path_factory.mktemp("people")
    lines = [judged(n, model, n < found) for model, found in zip(MODELS, (9, 6, 2), strict=True) for n in range(10)]
    (place / "audits.jsonl").write_text("\n".join(lines))
    done = evalake_here("import", "audits.jsonl", "--suite", "solidity_audit", "--json", folder=place)
    assert done.returncode == 0, done.stderr
    (place / "run").write_text(json.loads(done.stdout)["run_id"])
    return place


def test_a_sheet_is_exported_filled_in_and_imported(folder: Path) -> None:
    run = (folder / "run").read_text()
    done = evalake_here("label", "export", run, "--size", "4", "--out", "sheet.csv", folder=folder)
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((folder / "sheet.csv").read_text().splitlines()))
    audits = [row for row in rows if not row["finding_id"]]
    assert len(audits) == 4
    assert all(row["sample_id"] == f"sample-{row['sample_hash'][:12]}" for row in rows)  # labelled blind
    audits[0].update(verdict="vulnerable", target_found="yes", annotator="ada")
    audits[1].update(target_found="perhaps")
    with (folder / "filled.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    done = evalake_here("label", "import", "filled.csv", "--suite", "solidity_audit", folder=folder)
    assert done.returncode == 1
    assert "2 answers landed" in done.stdout
    assert "1 refused" in done.stdout
    assert "perhaps" in done.stderr
    query = (
        "select annotator, question, answer, sample_id in (select sample_id from solidity_audit_results) as named "
        "from human_labels order by question desc"
    )
    found = evalake_here("sql", query, "--format", "json", folder=folder)
    assert json.loads(found.stdout) == [
        {"annotator": "ada", "question": "verdict", "answer": "vulnerable", "named": True},
        {"annotator": "ada", "question": "target_found", "answer": "yes", "named": True},
    ]


def test_a_sheet_of_another_lake_is_refused(folder: Path) -> None:
    run = (folder / "run").read_text()
    evalake_here("label", "export", run, "--size", "1", "--out", "strange.csv", folder=folder)
    rows = list(csv.DictReader((folder / "strange.csv").read_text().splitlines()))
    rows[0].update(target_found="yes", sample_hash="f" * 64)
    with (folder / "strange.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows[:1])
    done = evalake_here("label", "import", "strange.csv", "--suite", "solidity_audit", folder=folder)
    assert done.returncode == 1
    assert "no result of it" in done.stderr


def test_weights_are_fitted_to_a_ranking_and_their_worth_is_said(folder: Path) -> None:
    (folder / "ranking.csv").write_text("model,rank\ngood,1\nfair,2\npoor,3\n")
    fit = json.loads(evalake_here("fit-weights", "ranking.csv", "--json", folder=folder).stdout)
    assert (fit["agreeing"], fit["pairs"]) == (3, 3)
    assert sum(fit["weights"].values()) == pytest.approx(1.0)
    assert fit["support"]


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        ("model,rank\nunknown,1\ngood,2\nfair,3\n", 2, "unknown"),
        ("name,place\ngood,1\n", 2, "columns"),
        ("", 2, "empty"),
    ],
)
def test_a_bad_ranking_is_named(folder: Path, content: str, code: int, named: str) -> None:
    (folder / "bad.csv").write_text(content)
    done = evalake_here("fit-weights", "bad.csv", folder=folder)
    assert done.returncode == code
    assert named in done.stderr


@pytest.mark.parametrize(
    "command", [("label", "import", "pipe.csv", "--suite", "solidity_audit"), ("fit-weights", "pipe.csv")]
)
def test_a_sheet_that_is_no_regular_file_is_not_waited_for(folder: Path, command: tuple[str, ...]) -> None:
    if not (folder / "pipe.csv").exists():
        os.mkfifo(folder / "pipe.csv")
    done = evalake_here(*command, folder=folder)
    assert done.returncode == 2
    assert "pipe.csv is not read: no regular file" in done.stderr


def test_imported_results_are_measured_with_the_options_of_the_configuration(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "audits.jsonl").write_text((folder / "audits.jsonl").read_text())
    weights = {"f2": 1, "target_detection_rate": 0, "finding_precision": 0, "avg_reasoning": 0, "calibration": 0}
    lines = [f"{name} = {weight}" for name, weight in weights.items()]
    (tmp_path / "evalake.toml").write_text("\n".join(["[suites.solidity_audit.sui_weights]", *lines]))
    done = json.loads(
        evalake_here("import", "audits.jsonl", "--suite", "solidity_audit", "--json", folder=tmp_path).stdout
    )
    shown = evalake_here("metrics", "--run", done["run_id"], "--format", "json", folder=tmp_path).stdout
    values = {(row["metric"], row["model"]): row["value"] for row in json.loads(shown) if row["slice"] == "all"}
    assert [values["sui", model] for model in MODELS] == [values["f2", model] for model in MODELS]


def test_suites_without_sheets_say_so(folder: Path) -> None:
    (folder / "empty.csv").write_text("a,b\n")
    done = evalake_here("label", "import", "empty.csv", "--suite", "command_guard", folder=folder)
    assert done.returncode == 2
    assert "not labelled" in done.stderr
