"""A roadmap: what scored sessions lack, grouped, counted, ranked by what it costs, and the same when made again."""

from pathlib import Path

import polars as pl
import pytest

from evalake.admin.roadmap import as_data, make_roadmap, measure_grouping, newest, ranked
from evalake.contracts.audit import audit
from evalake.contracts.tables import CALLS, ROADMAP_MENTIONS
from evalake.core.configuration import Configuration
from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from evalake.tasks.runtime.context import RunContext
from tests.integration.admin.roadmap.scored import absent, land_scores


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    return RunContext("run-1", "session_review", Lake(str(tmp_path / "lake")), Configuration())


def themes(rows: pl.DataFrame, kind: str = "absent") -> list[tuple[int, str, int, float, float]]:
    shown = ranked(rows).filter(kind=kind).select("rank", "theme", "samples", "points_lost", "mean_score")
    return [(rank, theme, n, lost, mean) for rank, theme, n, lost, mean in shown.rows()]


def test_themes_are_ranked_by_the_points_that_samples_lack_because_of_them(context: RunContext) -> None:
    land_scores(
        context.lake,
        ("a", 40, absent("heap-history", "packet-capture")),
        ("b", 60, absent("heap-history-graph")),
        ("c", 20, absent("packet-capture")),
        ("d", 90, "No critical tools were missing."),
    )
    rows = make_roadmap(context, None)
    # Of the 60 points that a lacks, each of its two themes has 30
    assert themes(rows) == [(1, "packet-capture", 2, 30.0 + 80.0, 30.0), (2, "heap-history", 2, 30.0 + 40.0, 50.0)]
    assert rows["samples"].unique().to_list() == [4]
    assert sum(lost for _, _, _, lost, _ in themes(rows)) == pytest.approx((100 - 40) + (100 - 60) + (100 - 20))
    assert audit(rows, ROADMAP_MENTIONS).bad.is_empty()


def test_the_same_results_give_the_same_roadmap_and_land_nothing(context: RunContext) -> None:
    land_scores(context.lake, ("a", 40, absent("x-ray")), ("b", 60, absent("y-scan")))
    first = make_roadmap(context, None)
    again = make_roadmap(RunContext("run-2", "session_review", context.lake, Configuration()), None)
    assert again.sort("name").equals(first.sort("name"))
    land_scores(context.lake, ("c", 10, absent("x-ray")))
    later = make_roadmap(context, None)
    assert set(later["roadmap_id"]) & set(first["roadmap_id"]) == set()
    assert set(first["theme_id"]) == set(later["theme_id"]), "a theme keeps its id"
    assert newest(context.lake, "session_review").equals(later)


def test_what_several_scorings_of_a_session_name_counts_once_and_its_score_is_their_mean(context: RunContext) -> None:
    land_scores(context.lake, ("a", 40, absent("x-ray", because="one")))
    land_scores(context.lake, ("a", 60, absent("x-ray", because="two")), judge="judge-b")
    assert themes(make_roadmap(context, None)) == [(1, "x-ray", 1, 50.0, 50.0)]


def test_every_kind_is_a_list_of_its_own(context: RunContext) -> None:
    headings = {"Should have been used": "logs", "Do not exist": "x-ray", "Could be improved": "logs"}
    said = "\n".join(f"## {heading}\n1. **{tool}**: why" for heading, tool in headings.items())
    land_scores(context.lake, ("a", 40, said), tags=("wrong_conclusion", "ignored_evidence"))
    data = as_data(make_roadmap(context, None))
    found = {kind["kind"]: [(each["theme"], each["points_lost"]) for each in kind["themes"]] for kind in data["kinds"]}
    assert found == {
        "absent": [("x-ray", 60.0)],
        "improvable": [("logs", 60.0)],
        "unused": [("logs", 60.0)],
        "failure": [("ignored_evidence", 30.0), ("wrong_conclusion", 30.0)],
    }
    (mention,) = data["kinds"][0]["themes"][0]["mentions"]
    assert (mention["sample_id"], mention["name"], mention["text"]) == ("a", "x-ray", "why")
    (mention,) = data["kinds"][3]["themes"][0]["mentions"]
    assert mention["name"] == "ignored_evidence: wrong_conclusion and ignored_evidence"


def test_a_lake_without_anything_wanting_has_no_roadmap(context: RunContext) -> None:
    assert make_roadmap(context, None).is_empty()
    land_scores(context.lake, ("a", 90, "No critical tools were missing."))
    assert make_roadmap(context, None).is_empty()
    assert not context.lake.exists(ROADMAP_MENTIONS) or context.lake.frame(ROADMAP_MENTIONS).collect().is_empty()
    assert as_data(newest(context.lake, "session_review"))["kinds"] == []


def test_a_suite_without_a_roadmap_is_told(context: RunContext) -> None:
    with pytest.raises(UsageError, match="command_guard has no roadmap: choose one of session_review"):
        make_roadmap(RunContext("r", "command_guard", context.lake, Configuration()), None)


def test_the_rules_are_better_than_chance_on_the_labelled_set_and_ask_nobody(context: RunContext) -> None:
    measured = measure_grouping(context, None)
    whole, held_out, failures, _ = measured
    assert (whole["named"], whole["themes"], held_out["named"]) == (66, 16, 32)
    assert (failures["kind"], failures["named"], failures["themes"], failures["found"]) == ("failure", 36, 12, 8)
    for part in measured:
        assert isinstance(part["adjusted_rand"], float)
        assert (0.03 if part["kind"] == "failure" else 0.15) < part["adjusted_rand"] < 1
    assert context.lake.frame(CALLS).collect().is_empty()
