"""The view `replies` of a ledger whose keys are kept answers what its plain definition answers."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.tables import CALLS, CORE_CONTRACTS
from core.private_folders import CACHE
from storage import ledger
from storage.key_index import keys
from storage.key_index.cache import folder_of
from storage.lake import Lake
from storage.ledger import LedgerIndex
from storage.sql import query as query_module
from storage.sql.query import query
from storage.sql.replies import known_replies
from storage.sql.views import REPLIES, views
from tests.storage.rows import call

pytestmark = pytest.mark.slow

VIEWS = views(CORE_CONTRACTS)
APPENDS = st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), min_size=1, max_size=8), min_size=1)


@pytest.fixture(autouse=True)
def kept_from_the_first_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(keys, "KEEP_FROM", 1)


def plain(sql: str) -> str:
    """The same query over the plain definition."""
    return sql.replace("replies", f"({REPLIES.sql})")


@settings(max_examples=8, deadline=None)
@given(APPENDS, st.integers(0, 4))
def test_it_answers_what_the_plain_definition_answers(
    tmp_path_factory: pytest.TempPathFactory, appends: list[list[tuple[int, int]]], read_after: int
) -> None:
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    for number, keys_of_append in enumerate(appends):
        ledger.append(lake, [call(*key, response=f"{number}.{n}") for n, key in enumerate(keys_of_append)])
        if number == read_after:
            LedgerIndex.read(lake)
    sql = "select * from replies order by all"
    known = known_replies(lake, sql, VIEWS, {})
    assert known is not None
    assert known[0].sql != REPLIES.sql
    assert query(lake, CORE_CONTRACTS, sql).equals(query(lake, CORE_CONTRACTS, plain(sql)))


@pytest.mark.parametrize(
    "sql", ["from REPLIES limit 1", "select * from cost_by_model_and_day", "with r as (from replies) from r"]
)
def test_every_query_that_reads_it_has_it(lake: Lake, sql: str) -> None:
    ledger.append(lake, [call(1)])
    assert known_replies(lake, sql, VIEWS, {}) is not None


def test_a_query_that_does_not_read_it_waits_for_nothing(lake: Lake) -> None:
    ledger.append(lake, [call(1)])
    assert known_replies(lake, "select * from calls", VIEWS, {}) is None
    assert not folder_of(lake.uri).exists()


def test_a_version_that_was_asked_for_has_the_plain_definition(lake: Lake) -> None:
    first = ledger.append(lake, [call(1, response="first")])
    ledger.append(lake, [call(1, response="second"), call(2)])
    assert known_replies(lake, "from replies", VIEWS, {CALLS.table: first}) is None
    asked = query(lake, CORE_CONTRACTS, "select response from replies", versions={CALLS.table: first})
    assert asked["response"].to_list() == ["first"]


def test_it_shows_the_version_that_it_knows(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def known_before(lake: Lake, *args: object) -> object:
        known = known_replies(lake, *args)  # type: ignore[arg-type]
        ledger.append(lake, [call(1, response="late"), call(2)])
        return known

    ledger.append(lake, [call(1, response="first")])
    monkeypatch.setattr(query_module, "known_replies", known_before)
    assert query(lake, CORE_CONTRACTS, "select response from replies").rows() == [("first",)]


def test_a_small_ledger_and_one_that_cannot_be_read_have_the_plain_definition(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert known_replies(lake, "from replies", VIEWS, {}) is None
    ledger.append(lake, [call(1)])
    (file,) = lake.open(CALLS).file_uris()
    Path(file).write_bytes(b"torn")
    assert known_replies(lake, "from replies", VIEWS, {}) is None
    monkeypatch.setattr(keys, "KEEP_FROM", 2)
    assert known_replies(lake, "from replies", VIEWS, {}) is None
