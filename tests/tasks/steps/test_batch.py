"""A batch knows the ledger it was planned for, and is tried again only where that can help."""

import asyncio
import shutil
from pathlib import Path

import pytest
from prefect.states import exception_to_failed_state

from contracts.tables import CALLS
from core.errors import LakeError
from storage import ledger
from storage.lake import Lake
from storage.ledger import shared_index
from tasks.runtime.resources import RunOverError
from tasks.steps.batch import BatchIncompleteError, call_batch, require_ledger
from tests.storage.rows import call, key_of


def test_a_lake_in_place_of_a_deleted_one_is_known_for_what_it_is(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for number in (1, 2):
        ledger.append(lake, [call(number)])
        table = lake.open(CALLS)
        ledger_id = str(table.metadata().id)
        require_ledger(lake, ledger_id)
        index = shared_index(lake, ledger_id, table.version())
        assert index.fetch([key_of(call(number))])  # each at the same version
        shutil.rmtree(lake.uri)
    with pytest.raises(LakeError, match="finds another lake"):
        require_ledger(lake, "the id of none")


@pytest.mark.parametrize(
    ("error", "is_tried_again"),
    [
        (OSError("a worker's machine failed"), True),
        (BatchIncompleteError("1 of 2 calls were given up on", {}), False),  # they had their own retries
        (RunOverError("the run is over"), False),
        (LakeError("no space left on the disk"), False),  # what is answered could not be kept: paid for nothing
    ],
)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["in this process", "in another one"])
def test_a_batch_is_tried_again_where_its_machine_failed(
    error: Exception, is_tried_again: bool, elsewhere: bool
) -> None:
    state = asyncio.run(exception_to_failed_state(error))
    if elsewhere:  # which tells no more of it than its words
        state.data = None
    assert call_batch.retry_condition_fn is not None
    assert call_batch.retry_condition_fn(call_batch, None, state) == is_tried_again
