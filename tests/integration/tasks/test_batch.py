"""A batch knows the ledger it was planned for, and is tried again only where that can help."""

import asyncio
import shutil
from pathlib import Path

import pytest
from prefect.states import exception_to_failed_state

from evalake.contracts.tables import CALLS
from evalake.core.configuration import PROVIDER, Configuration
from evalake.core.errors import LakeError
from evalake.sdk import Item, Sample
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.ledger import index_since
from evalake.tasks.batch import BatchIncompleteError, call_batch, require_endpoints, require_ledger
from evalake.tasks.converse import Conversation
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.resources import RunOverError
from tests.integration.storage.rows import call, key_of


def test_a_lake_in_place_of_a_deleted_one_is_known_for_what_it_is(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    for number in (1, 2):
        ledger.append(lake, [call(number)])
        table = lake.open(CALLS)
        ledger_id = str(table.metadata().id)
        require_ledger(lake, ledger_id)
        index = index_since(lake, ledger_id, table.version())
        assert index.fetch([key_of(call(number))])  # each at the same version
        shutil.rmtree(lake.uri)
    with pytest.raises(LakeError, match="does not find the lake of the run"):
        require_ledger(lake, "the id of none")


def test_a_process_that_would_ask_elsewhere_than_planned_asks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    context = RunContext("run", "command_guard", Lake(str(tmp_path / "lake")), Configuration())
    item = Item(Sample("command_guard", "d", "s", "ls"), "openai/m")
    planned = Conversation(item, next_model="openai/m", next_endpoint=PROVIDER)
    require_endpoints(context, [planned])
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.example")
    with pytest.raises(LakeError, match=r"calls openai/m at the endpoint http://elsewhere\.example, but the run was"):
        require_endpoints(context, [planned])


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
    assert call_batch.retry_condition_fn(call_batch, None, state) == is_tried_again  # type: ignore[arg-type]
