"""Two services of two lakes that share one PREFECT_HOME: each scores for its own lake only, in its own environment."""

from pathlib import Path

import pytest

from tests.e2e.processes import PrefectStack, wait_until
from tests.integration.server.services import Place, start
from tests.servers.model_server import ModelServer

pytestmark = pytest.mark.e2e

KEY = "JUDGE_KEY"


def test_services_of_two_lakes_take_none_of_each_others_scorings(tmp_path: Path) -> None:
    """Also when one of them stops in the middle of the other's."""
    alone = PrefectStack(tmp_path / "shared")
    alone.environment["PREFECT_API_URL"] = ""
    with ModelServer() as judge, ModelServer() as other_judge:
        place, other = _place(tmp_path / "one", judge), _place(tmp_path / "other", other_judge)
        alone.environment[KEY] = "key-of-one"
        service = start(alone, place)
        alone.environment[KEY] = "key-of-other"
        second = start(alone, other)

        place.answer(latency=3.0)
        for name in ("a", "b"):
            service.ask(name)
            second.ask(name)
        wait_until(lambda: judge.requests(), "the first question about a session of the first lake")
        for name in ("a", "b"):
            assert second.wait_for(name, "completed", "failed")["status"] == "completed"
        second.stop()
        for name in ("a", "b"):
            assert service.wait_for(name, "completed", "failed")["status"] == "completed"
        service.stop()

        for server, key in ((judge, "key-of-one"), (other_judge, "key-of-other")):
            assert [request.authorization for request in server.requests()] == [f"Bearer {key}"] * 4  # two turns each
    assert all(len(each.scores(name)) == 1 for each in (place, other) for name in ("a", "b"))


def _place(folder: Path, judge: ModelServer) -> Place:
    folder.mkdir()
    place = Place(folder, judge)
    whole = place.configuration.read_text()
    place.configuration.write_text(whole.replace("price", f'api_key_env = "{KEY}"\nprice', 1))
    place.write("a", "b")
    return place
