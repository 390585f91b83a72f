"""The campaigns of `make chaos`, in their shortest form."""

from pathlib import Path

import pytest

from chaos import object_store, torn_files
from chaos.proxy import LOST_REPLY

pytestmark = pytest.mark.e2e


def test_every_kind_of_damage_to_a_file_is_found_refused_or_harmless(tmp_path: Path) -> None:
    outcomes = list(torn_files.campaign(tmp_path, seed=1, seconds=0))
    assert len(outcomes) == 6
    assert [outcome.broken for outcome in outcomes] == [""] * 6


def test_nothing_is_lost_or_doubled_where_the_object_store_fails(tmp_path: Path) -> None:
    outcomes = list(object_store.campaign(tmp_path, seed=1, seconds=8))
    assert LOST_REPLY in " ".join(outcome.fault for outcome in outcomes)
    assert {outcome.broken for outcome in outcomes} == {""}
