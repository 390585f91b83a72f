"""Runs and metrics of every suite, over HTTP."""

import httpx

from tests.integration.server.viewer.world import TAG, World


def test_runs_and_metrics_of_every_suite_are_there(http: httpx.Client) -> None:
    everything = http.get("/runs").json()
    assert everything["total"] == len(everything["runs"]) >= 2
    suite = everything["runs"][0]["suite"]
    chosen = http.get("/runs", params={"suite": suite}).json()["runs"]
    assert chosen == [run for run in everything["runs"] if run["suite"] == suite]
    assert http.get("/runs", params={"suite": "nothing"}).json()["runs"] == []
    metrics = http.get("/metrics").json()
    assert {each["name"] for each in metrics["suites"]} >= {"command_guard", "session_review", "solidity_audit"}


def test_runs_and_metrics_are_filtered_by_tag(http: httpx.Client, world: World) -> None:
    tagged = http.get("/runs", params={"tag": TAG}).json()
    assert ([run["run_id"] for run in tagged["runs"]], tagged["tags"]) == ([world.verdicts], [TAG])
    assert {point["run_id"] for point in http.get("/metrics", params={"tag": TAG}).json()["points"]} == {world.verdicts}
    assert http.get("/metrics", params={"tag": "none"}).json()["points"] == []
