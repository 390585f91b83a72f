"""A judge is judged once a day, and never for a day that is past; flows/test_canary.py has what moves it."""

from pathlib import Path

import pytest

from evalake.core.configuration import read_configuration
from evalake.storage.lake import Lake
from evalake.tasks.canary import REPLICATES, Canary, CanaryError, watch
from evalake.tasks.runtime.context import RunContext
from tests.servers.judges import NoisyJudge
from tests.servers.model_server import ModelServer

JUDGE = "hosted_vllm/judge"


def test_a_day_is_asked_once_and_the_past_never(tmp_path: Path, model_server: ModelServer) -> None:
    model_server.rule(reply=NoisyJudge())
    file = tmp_path / "evalake.toml"
    file.write_text(f'[models."{JUDGE}"]\napi_base = "{model_server.api_base}"\n')
    context = RunContext("canary", "session_review", Lake(str(tmp_path / "lake")), read_configuration(file))
    today = Canary(context, JUDGE, "2026-11-22")
    assert today.first_replicate == 2026112200
    row = watch(today)
    assert (row["version"], row["answers"], row["moved"]) == (1, REPLICATES, False)
    asked = len(model_server.seen)
    assert asked > 0
    assert watch(today) == row
    assert len(model_server.seen) == asked
    with pytest.raises(CanaryError, match="has a row of a later day than 2026-11-21"):
        watch(Canary(context, JUDGE, "2026-11-21"))
