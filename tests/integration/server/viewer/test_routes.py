"""Runs and metrics of every suite, over HTTP."""

import httpx

from tests.integration.server.viewer.world import TAG, World


def test_runs_and_metrics_are_filtered_by_tag(http: httpx.Client, world: World) -> None:
    tagged = http.get("/runs", params={"tag": TAG}).json()
    assert ([run["run_id"] for run in tagged["runs"]], tagged["tags"]) == ([world.verdicts], [TAG])
    assert {point["run_id"] for point in http.get("/metrics", params={"tag": TAG}).json()["points"]} == {world.verdicts}
    assert http.get("/metrics", params={"tag": "none"}).json()["points"] == []
