"""The quick campaigns of `make chaos`, in their shortest form.

Other tests kill, stop and restart what the others do (test_recover, test_dask), have a provider fail in each way
(tests/integration/models), and let events through to who listens (tests/integration/server/scoring).
"""

import random
from collections import Counter
from pathlib import Path

import pytest

from chaos import histories, object_store, processes, surroundings, torn_files
from chaos.histories import contradictions
from chaos.proxy import LOST_REPLY
from evalake.contracts.contract import ALWAYS
from evalake.contracts.tables import CALLS
from evalake.suites.registry import all_contracts

pytestmark = pytest.mark.e2e

REPLACED = {None: "never", ALWAYS: "always"}  # and by all other conditions sometimes
EACH_WAY = (
    CALLS,
    *{(bool(each.partition_by), REPLACED.get(each.replaced_when)): each for each in all_contracts()}.values(),
)


def test_every_kind_of_damage_to_a_file_is_found_refused_or_harmless(tmp_path: Path) -> None:
    outcomes = list(torn_files.campaign(tmp_path, seed=1, seconds=0))
    assert len(outcomes) == 6
    assert [outcome.broken for outcome in outcomes] == [""] * 6


def test_nothing_is_lost_or_doubled_where_the_object_store_fails(tmp_path: Path) -> None:
    outcomes = list(object_store.campaign(tmp_path, seed=1, seconds=0, share=0.1))
    assert LOST_REPLY in " ".join(outcome.fault for outcome in outcomes)
    assert {outcome.broken for outcome in outcomes} == {""}


def test_a_disk_or_a_clock_that_changes_costs_nothing_that_was_promised(tmp_path: Path) -> None:
    """The ledger, and a table of each way to land: with parts or none, with rows replaced never, sometimes, always."""
    outcomes = list(surroundings.campaign(tmp_path, seed=1, seconds=0, contracts=EACH_WAY))
    assert "lake: permissions taken away" in [outcome.fault for outcome in outcomes if outcome.injected]
    assert {outcome.broken for outcome in outcomes} == {""}


def test_a_history_of_clients_of_whom_one_is_killed_has_an_order(tmp_path: Path) -> None:
    history = histories.record(tmp_path / "history", random.Random(1), clients=3, operations=6)
    assert len(history) > 12
    assert list(contradictions(history)) == []


def test_every_process_is_hit_in_every_way_and_several_at_once() -> None:
    blows = list(processes.drawn(random.Random(1), 48))
    hits = Counter(hit for blow in blows for hit in blow.items())
    assert (hits.total(), len(hits), max(map(len, blows))) == (48, 15, 4)
    assert set(hits.values()) <= {3, 4}
    soon = [hit for blow in blows[:6] for hit in blow.items()]
    assert len(set(soon)) == len(soon) == 15
