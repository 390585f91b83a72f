"""Roadmaps as suites declare them: what is named has the columns of mentions, and each kind a way of grouping."""

from pathlib import Path

import pytest

from evalake.sdk.suite import MENTIONS, Roadmap
from evalake.storage.lake import Lake
from evalake.suites.registry import suite, suite_names
from tests.integration.admin.roadmap.scored import absent, land_scores

ROADMAPS = {name: roadmap for name in suite_names() if (roadmap := suite(name).roadmap) is not None}


@pytest.mark.parametrize("roadmap", ROADMAPS.values(), ids=ROADMAPS)
def test_what_is_named_is_told_with_its_sample_and_score(roadmap: Roadmap, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    land_scores(lake, ("a", 40, absent("heap-history")), ("b", 90, "No critical tools were missing."))
    tables = {contract.table: lake.frame(contract) for contract in roadmap.tables}
    mentions = roadmap.mentions(tables)
    assert mentions.schema == MENTIONS
    assert mentions.select("kind", "name", "sample_id", "score").rows() == [("absent", "heap-history", "a", 40.0)]
    assert roadmap.scored(tables) == 2


@pytest.mark.parametrize("roadmap", ROADMAPS.values(), ids=ROADMAPS)
def test_each_kind_that_is_grouped_by_meaning_is_measured_on_names_that_no_rule_was_chosen_by(roadmap: Roadmap) -> None:
    labelled = roadmap.labelled()
    assert {kind for kind, how in roadmap.kinds.items() if how.by_meaning} >= labelled.keys() > set()
    for names in labelled.values():
        assert any(each.held_out for each in names)
        assert len({each.theme for each in names}) < len(names)


@pytest.mark.parametrize("roadmap", ROADMAPS.values(), ids=ROADMAPS)
def test_without_a_table_nothing_is_named(roadmap: Roadmap, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    tables = {contract.table: lake.frame(contract) for contract in roadmap.tables}
    assert roadmap.mentions(tables).is_empty()
    assert roadmap.scored(tables) == 0
