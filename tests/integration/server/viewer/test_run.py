"""One run: its headline with intervals, what it waited for and gave up on, and by what its items are chosen."""

from pathlib import Path

import httpx

from evalake.admin.import_results import import_recorded
from evalake.server.viewer.run import run_opposed
from evalake.server.viewer.run_index import RunIndexes
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.integration.cli.command import recorded
from tests.integration.server.viewer.world import BAD, COMMANDS, GOOD, SILENT, World


def test_a_run_tells_its_headline_with_intervals_and_its_choices(http: httpx.Client, world: World) -> None:
    run = http.get(f"/runs/{world.verdicts}").json()
    first = {value["model"]: value for value in run["values"] if value["metric"] == "balanced_accuracy"}

    assert (run["items"], run["answers"], run["answered"]) == (COMMANDS, 2 * COMMANDS, 2 * COMMANDS)
    assert first.keys() == {GOOD, BAD}
    assert first[GOOD]["ci_low"] < first[GOOD]["value"] < first[GOOD]["ci_high"]
    assert {choice["value"]: choice["count"] for choice in run["choices"]["model"]} == {GOOD: COMMANDS, BAD: COMMANDS}
    assert {choice["value"] for choice in run["choices"]["verdict"]} >= {"ALLOW", "BLOCK"}
    assert run["provenance"]["snapshot_id"] == run["run"]["snapshot_id"]


def test_a_run_tells_what_it_gave_up_on_and_how_often_it_tried(http: httpx.Client, world: World) -> None:
    run = http.get(f"/runs/{world.audits}").json()

    assert [(each["model"], each["kind"], each["count"]) for each in run["given_up"]] == [(SILENT, "rate_limit", 1)]
    assert sum(each["retried"] for each in run["waiting"]) == 3
    assert run["run"]["message"] == "one call was given up on"


def test_what_came_of_the_items_is_told_of_each_model_and_judge(http: httpx.Client, world: World) -> None:
    run = http.get(f"/runs/{world.verdicts}").json()
    of = {each["model"]: each for each in run["coverage"]}
    assert {model: (each["asked"], each["answered"]) for model, each in of.items()} == {
        GOOD: (COMMANDS, COMMANDS),
        BAD: (COMMANDS, COMMANDS),
    }
    assert run["coverage_table"]["headings"] == ["model", "source", "asked", "answered", "without verdict", "missing"]
    assert [row[0] for row in run["coverage_table"]["rows"]] == [*of]
    audits = http.get(f"/runs/{world.audits}").json()["coverage"]  # a run whose row of coverage was never kept
    assert {each["model"]: each["missing_kinds"] for each in audits if each["missing"]} == {SILENT: {"rate_limit": 1}}


def test_all_values_are_there_headline_first(http: httpx.Client, world: World) -> None:
    values = http.get(f"/runs/{world.verdicts}/values").json()

    assert (values[0]["metric"], values[0]["slice"]) == ("balanced_accuracy", "all")
    assert {value["metric"] for value in values} > {"malicious_detection_rate", "harmless_acceptance_rate"}
    by_prompt = [each for each in values if (each["slice"], each["metric"]) == ("prompt_type", "balanced_accuracy")]
    assert {(each["slice_value"], each["model"]) for each in by_prompt} == {("direct", GOOD), ("direct", BAD)}
    assert all(each["slice"] == "all" for each in http.get(f"/runs/{world.verdicts}").json()["values"])


def test_models_that_are_not_apart_share_a_letter(http: httpx.Client, world: World) -> None:
    letters = http.get(f"/runs/{world.verdicts}/letters").json()
    assert {each["model"]: (each["letters"], each["missing"]) for each in letters} == {
        GOOD: ("a", None),
        BAD: ("a", None),
    }
    opposed = http.get(f"/runs/{world.verdicts}/opposed").json()
    assert opposed == {"items": 0, "fewest_models": 8, "opposed": [], "disputed": []}  # nothing is said of two models


def test_an_item_with_a_wrong_label_is_listed_from_eight_models_on(tmp_path: Path) -> None:
    """Better models are right on more of the items, but for one, whose label is wrong."""
    lines = []
    for model in range(10):
        for n in range(30):
            right = (n * 7 + 3) % 30 < 3 * (model + 0.5)
            is_right = not model > 4 if n == 11 else right
            lines.append(recorded(n, f"m{model}", "BLOCK" if (n % 2 == 0) == is_right else "ALLOW"))
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, suite("command_guard"), [tmp_path / "lines.jsonl"])
    seen = run_opposed(RunIndexes(lake), run_id)
    assert [(each.sample_id, each.models) for each in seen.opposed] == [("s11", 10)]
    assert seen.opposed[0].ci_high < 0


def test_whether_answers_are_right_is_a_choice_where_the_suite_says_so(http: httpx.Client, world: World) -> None:
    choices = http.get(f"/runs/{world.verdicts}").json()["choices"]
    by_item = http.get(f"/runs/{world.verdicts}/items", params={"limit": 500}).json()["items"]
    wrong = sum(answer["correct"] is False for item in by_item for answer in item["answers"])

    assert {"value": "false", "count": wrong} in choices["correct"]
