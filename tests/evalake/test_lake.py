"""`import evalake`: what a lake holds, as frames."""

from pathlib import Path

import pytest

import evalake
from tests.storage.recorded_lake import AUDITS, JUDGES, MODELS, SAMPLES, recorded_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> evalake.Lake:
    return evalake.open(recorded_lake(tmp_path_factory.mktemp("python")).uri)


def test_a_run_has_its_samples_replies_results_and_metrics(lake: evalake.Lake) -> None:
    run = lake.find(suite="command_guard")
    assert run.state == "completed" or run.message
    assert run.samples()["sample_id"].to_list() == [f"s{n}" for n in range(SAMPLES)]
    replies = run.replies()
    assert replies.height == SAMPLES * len(MODELS)
    assert replies["response"].str.contains("action").all()
    results = run.results()
    assert results.group_by("model").len().sort("model")["len"].to_list() == [SAMPLES] * len(MODELS)
    headline = run.headline().filter(model=MODELS[1])
    assert headline["metric"][0] == "balanced_accuracy"
    assert headline["value"][0] == 1.0
    assert run.metrics()["metric"][0] == "balanced_accuracy"


def test_replies_hold_the_judges_too(lake: evalake.Lake) -> None:
    run = lake.find(suite="solidity_audit")
    assert run.replies().height == AUDITS * (1 + len(JUDGES))


def test_runs_are_listed_newest_first_and_found_by_name(lake: evalake.Lake) -> None:
    runs = lake.runs("command_guard")
    assert runs.height == 2
    assert lake.find(suite="command_guard").run_id == runs["run_id"][0]
    assert lake.find(runs["run_id"][1]).row["samples"] == SAMPLES // 2
    with pytest.raises(evalake.UsageError, match="has no run nothing"):
        lake.find("nothing")


def test_runs_are_found_by_a_tag(lake: evalake.Lake) -> None:
    (tagged,) = lake.runs(tag="pilot").iter_rows(named=True)
    assert (tagged["tags"], tagged["note"], tagged["samples"]) == (["pilot"], None, SAMPLES // 2)
    assert lake.find(tag="pilot").run_id == tagged["run_id"]
    with pytest.raises(evalake.UsageError, match="has no run of command_guard tagged night"):
        lake.find(suite="command_guard", tag="night")


def test_models_are_compared_and_tables_asked(lake: evalake.Lake) -> None:
    run = lake.find(suite="command_guard")
    compared = lake.compare(MODELS[1], MODELS[0], run=run.run_id)
    assert compared.row(0, named=True)["difference"] == pytest.approx(0.25)
    counted = lake.sql("select count(*) as n from samples where suite = 'command_guard' and dataset = 'mine'")
    assert counted["n"][0] > 0
    with pytest.raises(evalake.EvalakeError, match="nosuchtable"):
        lake.sql("select * from nosuchtable")


def test_what_a_notebook_shows_of_a_run_holds_no_markup_of_others(tmp_path: Path, lake: evalake.Lake) -> None:
    run = lake.find(suite="command_guard")
    shown = run._repr_html_()
    assert "balanced_accuracy" in shown
    hostile = evalake.Run(run.lake, {**run.row, "message": "<script>alert(1)</script>"})
    assert "<script>" not in hostile._repr_html_()
    assert run.run_id in lake._repr_html_()


def test_a_lake_without_runs_says_so(tmp_path: Path) -> None:
    with pytest.raises(evalake.UsageError, match="has no run yet"):
        evalake.open(tmp_path / "empty").find()
