"""The flow `roadmap`: what results lack is ranked, and the same results give the roadmap that is there."""

from pathlib import Path

import pytest

from evalake.contracts.tables import ROADMAP_MENTIONS
from evalake.core.errors import ProviderError, UsageError
from evalake.flows.roadmap import measure_roadmap, roadmap
from evalake.storage.lake import Lake
from tests.integration.admin.roadmap.scored import absent, land_scores
from tests.integration.flows.artifacts import newest_artifact


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def test_what_is_named_lands_once_and_is_ranked_in_the_ui(lake: Lake) -> None:
    land_scores(lake, ("a", 40, absent("x-ray")), ("b", 60, absent("y-scan")))
    made = roadmap(lake=lake.uri)
    mentions = lake.frame(ROADMAP_MENTIONS).collect()
    assert made == {"session_review": mentions["roadmap_id"].unique().item()}
    assert sorted(mentions["name"]) == ["x-ray", "y-scan"]
    description, rows = newest_artifact("roadmap-session-review")
    assert description == "Tool roadmap"
    ranked = [(row["rank"], row["theme"], row["points_lost"]) for row in rows]
    assert ranked == [(1, "x-ray", 60.0), (2, "y-scan", 40.0)]
    assert roadmap(suites=["session_review"], lake=lake.uri) == made
    assert lake.frame(ROADMAP_MENTIONS).collect().height == mentions.height


def test_who_cannot_group_and_what_cannot_be_grouped_is_named(lake: Lake) -> None:
    land_scores(lake, ("a", 40, absent("x-ray")))
    with pytest.raises(ProviderError, match="nowhere/judge"):
        roadmap(judge="nowhere/judge", lake=lake.uri)
    with pytest.raises(UsageError, match="command_guard has no roadmap: choose one of session_review"):
        roadmap(suites=["command_guard"], lake=lake.uri)
    assert lake.frame(ROADMAP_MENTIONS).collect().is_empty()


def test_grouping_is_measured_on_the_labelled_set(lake: Lake) -> None:
    measured = measure_roadmap("session_review", lake=lake.uri)
    assert {row["kind"] for row in measured} == {"absent", "failure"}
    assert all(0 <= row["adjusted_rand"] <= 1 for row in measured)
    with pytest.raises(UsageError, match="command_guard"):
        measure_roadmap("command_guard", lake=lake.uri)
