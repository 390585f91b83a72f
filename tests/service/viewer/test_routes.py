"""Runs and metrics of every suite, over HTTP."""

import httpx


def test_runs_and_metrics_of_every_suite_are_there(http: httpx.Client) -> None:
    everything = http.get("/runs").json()
    assert everything["total"] == len(everything["runs"]) >= 2
    suite = everything["runs"][0]["suite"]
    chosen = http.get("/runs", params={"suite": suite}).json()["runs"]
    assert chosen == [run for run in everything["runs"] if run["suite"] == suite]
    assert http.get("/runs", params={"suite": "nothing"}).json()["runs"] == []
    metrics = http.get("/metrics").json()
    assert {each["name"] for each in metrics["suites"]} >= {"command_guard", "session_review", "solidity_audit"}
