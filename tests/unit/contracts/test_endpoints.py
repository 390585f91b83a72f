"""Rows from before endpoints were kept: their endpoint is unknown, and stays told apart from every other."""

import pytest

from evalake.contracts.contract import ENDPOINTS_OF_RESULTS, Added, Contract
from evalake.contracts.engines.arrow import conform, upgrade_rows
from evalake.contracts.tables import CALLS, RUN_ITEMS
from evalake.core.configuration import UNKNOWN
from evalake.sdk import JudgedRow, ResultRow, result_contract
from evalake.sdk.results import LANDED_BY_RUN
from tests.unit.contracts.tables.rows import sound


class Plain(ResultRow):
    """An answer."""


class Judged(JudgedRow):
    """A judged answer."""


def brought_forward(contract: Contract, **values: object) -> dict[str, object]:
    """A row from before the columns, as it is read now."""
    older = conform([sound(contract, **values)], contract).drop(
        "endpoint", "judge_endpoint", "reply_revision", strict=False
    )
    return upgrade_rows(older.lazy(), contract, contract.schema_version - 1).collect().row(0, named=True)


@pytest.mark.parametrize("contract", [CALLS, RUN_ITEMS, result_contract("a", Plain), result_contract("b", Judged)])
def test_older_rows_become_rows_of_an_unknown_endpoint(contract: Contract) -> None:
    row = brought_forward(contract)
    assert (row["endpoint"], row.get("judge_endpoint", UNKNOWN), row.get("reply_revision", 0)) == (UNKNOWN, UNKNOWN, 0)


def test_an_item_that_no_judge_was_asked_about_has_no_endpoint_of_one() -> None:
    assert brought_forward(RUN_ITEMS, judge_hash=None)["judge_endpoint"] is None


def test_a_suite_says_where_the_change_stands_among_its_own_or_has_it_last() -> None:
    own = Added(("reason",))
    shared = (LANDED_BY_RUN, ENDPOINTS_OF_RESULTS)
    assert result_contract("a", Plain, changes=(own,)).changes == (LANDED_BY_RUN, own, ENDPOINTS_OF_RESULTS)
    assert result_contract("a", Plain, changes=(*shared, own)).changes == (*shared, own)
