"""No number without its failures: when a run is complete, what it says of what it lacks, and where."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalake.admin.check import check_lake
from evalake.contracts.tables import RUN_COVERAGE
from evalake.suites.registry import suite
from tests.integration.flows.artifacts import newest_artifact
from tests.integration.flows.test_judges import AUDITS, DOUBTING, STRICT, Bench, bench  # noqa: F401
from tests.integration.flows.workplace import MODEL, OTHER, Workplace


def commands(work: Workplace, count: int, malicious: Sequence[int] | None = None) -> str:
    """A dataset of commands, told apart by their number; every other one is malicious, or those named."""
    bad = range(0, count, 2) if malicious is None else malicious
    lines: list[dict[str, Any]] = [{"sample_id": f"s{n}", "command": f"run # {n:05d}"} for n in range(count)]
    for number, line in enumerate(lines):
        line |= {"label": "malicious", "category": "shell"} if number in bad else {"label": "harmless"}
    file = work.folder / "mixed.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def fail(work: Workplace, numbers: Sequence[int], model: str = "guard") -> None:
    """Have the server fail on these commands for good."""
    for number in numbers:
        fault = {"kind": "server_error", "times": 0}
        work.server.rule(model=model, contains=f"# {number:05d}", faults=(fault,))


def covered(work: Workplace, run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rows = work.rows(RUN_COVERAGE).filter(run_id=run["run_id"])
    return {row["model"]: row for row in rows.iter_rows(named=True)}


def test_four_of_a_hundred_may_be_missing_and_six_may_not(work: Workplace) -> None:
    data = commands(work, 100)
    fail(work, range(4))
    fail(work, range(6), "other")
    run = work.run(data, models=[MODEL])
    assert (run["state"], run["flow_state"]) == ("completed", "Completed")
    assert f"{MODEL} lacks 4 of 100 (4.0 %) items: 4 server (5.0 % may be missing)" in run["message"]
    both = work.run(data, models=[MODEL, OTHER])
    assert (both["state"], both["flow_state"]) == ("incomplete", "Failed")
    assert f"{OTHER} lacks 6 of 100 (6.0 %) items: 6 server; only 5.0 % may be missing" in both["message"]
    rows = covered(work, both)
    assert [(rows[m]["asked"], rows[m]["answered"], rows[m]["missing"]) for m in (MODEL, OTHER)] == [
        (100, 96, 4),
        (100, 94, 6),
    ]
    assert json.loads(rows[OTHER]["missing_kinds"]) == {"server": 6}
    description, artifact = newest_artifact(f"coverage-{both['run_id']}")
    assert description == "Asked and answered"
    assert {row["model"]: row["missing"] for row in artifact} == {
        MODEL: "4 (4.0 %): 4 server",
        OTHER: "6 (6.0 %): 6 server",
    }
    assert work.run(data, models=[MODEL, OTHER], max_missing=0.06)["state"] == "completed"
    work.configuration.write_text("max_missing = 0.03\n" + work.configuration.read_text())
    strict = work.run(data, models=[MODEL])
    assert strict["state"] == "incomplete"
    assert json.loads(strict["parameters"])["max_missing"] == 0.03


def test_a_source_that_loses_a_label_is_incomplete_however_little_is_missing(work: Workplace) -> None:
    data = commands(work, 100, malicious=[7])
    fail(work, [7])
    run = work.run(data)
    assert run["state"] == "incomplete"
    assert f"{MODEL} has no answer to any malicious item of mixed" in run["message"]
    assert covered(work, run)[MODEL]["lost_labels"] == ["malicious"]


def test_a_label_that_was_refused_as_a_whole_is_lost(work: Workplace) -> None:
    data = Path(commands(work, 10, malicious=[]))
    with data.open("a") as file:
        file.write(json.dumps({"sample_id": "x", "command": "no text\x00", "label": "malicious"}) + "\n")
    run = work.run(str(data))
    assert run["state"] == "incomplete"
    assert covered(work, run)[MODEL]["source_rows"] == 11


def test_a_parrot_ends_incomplete_now_and_when_nothing_is_left_to_ask(work: Workplace) -> None:
    work.server.rule(reply="I am just a parrot.")
    data = commands(work, 20)
    for made in (20, 0):
        run = work.run(data)
        assert (run["state"], run["calls_made"], run["flow_state"]) == ("incomplete", made, "Failed")
        assert "20 of 20 (100.0 %) replies hold no verdict: 20 format_error" in run["message"]
    accepted = work.run(data, accept_unreadable=True)
    assert (accepted["state"], accepted["calls_made"]) == ("completed", 0)
    assert "20 format_error" in accepted["message"]
    (results,) = check_lake(work.lake, [suite("command_guard").results])
    assert results.state == "warning"
    assert "errors_not_concentrated" in results.warnings[0]


def test_frequent_empty_replies_are_said_of_a_complete_run(work: Workplace) -> None:
    for number in range(6):
        work.server.rule(contains=f"# {number:05d}", reply="")
    run = work.run(commands(work, 20))
    assert run["state"] == "completed"
    assert "6 of 20 (30.0 %) replies hold no verdict: 6 empty" in run["message"]


def test_a_judge_whose_judgements_fail_is_named_alone_and_panels_are_not_counted(
    bench: Bench,  # noqa: F811
) -> None:
    bench.server.rule(model="doubting", reply="I would rather not say.")
    run_id = bench.run(STRICT, DOUBTING)
    rows = {
        row["judge"]: row
        for row in bench.lake.frame(RUN_COVERAGE).collect().iter_rows(named=True)
        if row["run_id"] == run_id
    }
    assert {judge: (row["asked"], row["missing"]) for judge, row in rows.items()} == {
        STRICT: (AUDITS, 0),
        DOUBTING: (AUDITS, AUDITS),
    }
    assert json.loads(rows[DOUBTING]["missing_kinds"]) == {"judge_error": AUDITS}
