"""The checker of histories knows what no order explains, and the ledger and landing do what the model does."""

from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from chaos.histories import Operation, contradictions
from evalake.contracts.tables import CALLS
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import LedgerIndex
from evalake.storage.maintenance import maintain
from tests.integration.storage.rows import TOYS, call, key_of, toy

A = Operation(0, "append", 0, "a", 1, 2)
B = Operation(1, "append", 0, "b", 3, 4)


def read(told: str, began: float, ended: float) -> Operation:
    return Operation(2, "read", 0, "", began, ended, told)


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        ([A, B, read("b", 5, 6)], "had been acknowledged before"),
        ([A, read("", 3, 4)], "nothing was read"),
        ([A, B, read("a", 5, 6), read("b", 5, 6)], "2 values were read"),
        ([B, read("b", 1, 2)], "before anybody wrote it"),
        ([Operation(0, "append", 0, "a", 1), read("a", 2, 3), read("", 4, 5)], "nothing was read"),
    ],
)
def test_a_history_that_has_none_is_found(history: list[Operation], problem: str) -> None:
    (said,) = contradictions(history)
    assert problem in said


KEYS, VALUES = st.integers(0, 2), st.integers(0, 9)


class Tables(RuleBasedStateMachine):
    """The ledger and a table beside a model of each: what came first under a key stays, through maintenance too."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.lake = Lake(self.folder.name)
        self.replies: dict[int, str] = {}
        self.rows: dict[str, float] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(key=KEYS, value=VALUES)
    def append(self, key: int, value: int) -> None:
        ledger.append(self.lake, [call(key, response=str(value))])
        self.replies.setdefault(key, str(value))

    @rule(key=KEYS, value=VALUES)
    def land(self, key: int, value: int) -> None:
        land(self.lake, TOYS, pl.DataFrame([toy(str(key), size=float(value))]))
        self.rows.setdefault(str(key), float(value))

    @rule()
    def read(self) -> None:
        wanted = [key_of(call(key)) for key in range(3)]
        found = LedgerIndex.read(self.lake).fetch(wanted)
        assert {key: row["response"] for key, row in found.items()} == {
            wanted[key]: reply for key, reply in self.replies.items()
        }
        assert dict(self.lake.frame(TOYS).select("key", "size").collect().iter_rows()) == self.rows

    @rule()
    def keep_up(self) -> None:
        maintain(self.lake, [TOYS, CALLS], retention_hours=0)


Tables.TestCase.settings = settings(max_examples=8, stateful_step_count=10, deadline=None, derandomize=True)
TestTables = Tables.TestCase
