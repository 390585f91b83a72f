"""The roadmap as the API gives it."""

from pathlib import Path

from contracts.compile.arrow import conform
from contracts.tables import ROADMAP_MENTIONS
from core.configuration import Configuration
from storage.lake import Lake
from storage.landing import land
from tasks.jobs.roadmap.make import make_roadmap
from tasks.runtime.context import RunContext
from tests.service.services import Place, Service
from tests.tasks.jobs.roadmap.scored import absent, land_scores


def test_the_roadmap_is_the_last_one_that_was_made_with_the_sessions_behind_it(
    listed: Service, place: Place, tmp_path: Path
) -> None:
    none = listed.http.get("/api/v1/scoring/roadmap").json()
    assert (none["roadmap_id"], none["sessions"], none["kinds"]) == (None, 0, [])
    elsewhere = Lake(str(tmp_path / "lake"))
    land_scores(elsewhere, ("wanting", 40, absent("x-ray", because="it would have shown it")))
    made = make_roadmap(RunContext("roadmap", "session_review", elsewhere, Configuration()), None)
    land(place.lake, ROADMAP_MENTIONS, conform(made.to_dicts(), ROADMAP_MENTIONS))
    found = listed.http.get("/api/v1/scoring/roadmap").json()
    assert (found["roadmap_id"], found["judge"], found["sessions"]) == (made["roadmap_id"][0], None, 1)
    (theme,) = (each for kind in found["kinds"] for each in kind["themes"])
    assert (theme["theme"], theme["sessions"], theme["mean_score"], theme["points_lost"]) == ("x-ray", 1, 40.0, 60.0)
    assert theme["mentions"] == [{"session_id": "wanting", "name": "x-ray", "text": "it would have shown it"}]
