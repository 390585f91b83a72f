"""A judge that moves, with a real server and worker: the event arrives, and the automation has snapshots say so."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalake.contracts.tables import SNAPSHOTS
from evalake.flows.evaluate import evaluate
from evalake.flows.judges import canary
from evalake.storage.lake import Lake
from tests.e2e.processes import PrefectStack, wait_until
from tests.servers.judges import NoisyJudge
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.e2e

JUDGE = "hosted_vllm/judge"
FIRST = date(2026, 11, 20)


def test_a_moved_judge_is_an_event_on_which_an_automation_acts(
    stack: PrefectStack, model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALAKE_REPORTS", str(tmp_path / "reports"))
    mind = NoisyJudge()
    model_server.rule(reply=mind)
    lake = Lake(str(tmp_path / "lake"))
    configuration = tmp_path / "evalake.toml"
    configuration.write_text(f'[models."{JUDGE}"]\napi_base = "{model_server.api_base}"\n')
    where: dict[str, Any] = {"judges": [JUDGE], "lake": lake.uri, "configuration_file": str(configuration)}

    with stack.here(tmp_path / "results"):
        canary(suites=["session_review"], day=FIRST, **where)
        evaluate(suite="session_review", datasets=["starter"], first=4, **where)
    assert _events(stack, lake) == []
    (before,) = lake.frame(SNAPSHOTS).collect()["warnings"].to_list()
    assert not any("is in version" in warning for warning in before)

    mind.shift = 25
    with stack.here(tmp_path / "results"):
        moved = canary(suites=["session_review"], day=FIRST + timedelta(1), **where, return_state=True)
    (event,) = wait_until(lambda: _events(stack, lake), "the event of the new version")
    assert event["resource"]["prefect.resource.id"] == f"evalake.judge.session_review.{JUDGE}"
    assert (event["payload"]["version"], event["payload"]["day"]) == (2, "2026-11-21")
    assert f"prefect.flow-run.{moved.state_details.flow_run_id}" in [
        each["prefect.resource.id"] for each in event["related"]
    ]

    snapshots = wait_until(lambda: _more_than_one(lake), "the snapshot that the automation asks for")
    (warning,) = [text for text in snapshots[-1]["warnings"] if "is in version" in text]
    assert JUDGE in warning
    assert "version 2" in warning


def _events(stack: PrefectStack, lake: Lake) -> list[dict[str, Any]]:
    found = stack.post("/events/filter", {"filter": {"event": {"name": ["evalake.judge-version.began"]}}})["events"]
    return [event for event in found if event["payload"]["lake"] == lake.uri]


def _more_than_one(lake: Lake) -> list[dict[str, Any]]:
    rows = lake.frame(SNAPSHOTS).collect().sort("created_at").to_dicts()
    return rows if len(rows) > 1 else []
