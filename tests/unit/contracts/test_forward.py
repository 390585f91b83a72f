"""Rows of an older schema become rows of the newest by the changes of their contract, each from where they stand."""

import polars as pl
import pytest
from pydantic import Field

from evalake.contracts.contract import Added, Contract, Renamed, Rewritten, RowModel
from evalake.contracts.engines.arrow import upgrade_rows
from evalake.core.errors import SchemaMismatchError


class PriceRow(RowModel):
    """One price."""

    name: str = Field(description="The key.")
    cents: int | None = Field(description="The price.")
    note: str | None = Field(description="A note.")


def in_cents(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.select("name", cents=(pl.col("price") * 100).cast(pl.Int64))


PRICES = Contract(
    "prices",
    PriceRow,
    ("name",),
    "Prices.",
    changes=(Renamed(columns={"cost": "price"}), Rewritten("prices are in cents", in_cents), Added(("note",))),
)


@pytest.mark.parametrize(
    ("version", "row"),
    [
        (1, {"name": "tea", "cost": 1.5}),
        (2, {"name": "tea", "price": 1.5}),
        (3, {"name": "tea", "cents": 150}),
        (4, {"note": None, "cents": 150, "name": "tea"}),
    ],
)
def test_each_version_comes_to_the_newest(version: int, row: dict[str, object]) -> None:
    rows = pl.LazyFrame([row], schema_overrides={"note": pl.String} if "note" in row else None)
    assert upgrade_rows(rows, PRICES, version).collect().rows(named=True) == [
        {"name": "tea", "cents": 150, "note": None}
    ]


def test_rows_that_do_not_become_what_the_contract_wants_are_refused() -> None:
    rows = pl.LazyFrame([{"name": 7, "cents": 150, "more": True}])
    with pytest.raises(SchemaMismatchError, match=r"changes of the table prices .* they differ in more, name$"):
        upgrade_rows(rows, PRICES, 3)
