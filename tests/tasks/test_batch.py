"""A batch knows the ledger it was planned for, also where a process has known another one at its place."""

import shutil
from pathlib import Path

import pytest

from contracts.errors import LakeError
from contracts.tables import CALLS
from storage import ledger
from storage.lake import Lake
from storage.ledger import shared_index
from tasks.batch import require_ledger
from tests.storage.rows import call


def test_a_lake_in_place_of_a_deleted_one_is_known_for_what_it_is(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for number in (1, 2):
        ledger.append(lake, [call(number)])
        table = lake.open(CALLS)
        ledger_id = str(table.metadata().id)
        require_ledger(lake, ledger_id)
        index = shared_index(lake.uri, (), ledger_id, table.version())
        assert index.fetch([(call(number)["prompt_hash"], 0)])  # each at the same version
        shutil.rmtree(lake.uri)
    with pytest.raises(LakeError, match="finds another lake"):
        require_ledger(lake, "the id of none")
