"""How a table's schema changed since its first version: each change as data, in the order in which they were made.

A contract lists the changes of its table, and its schema version is one more than their number. Lakes of older versions
are brought forward by `evalake maintain --migrate`; older versions of a table pass the same changes when they are read.
Every change shows in the names or types of the columns, so that a table of the newest schema is told by its columns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl


@dataclass(frozen=True)
class Added:
    """Columns that were added, nullable every one; rows from before hold null."""

    columns: tuple[str, ...]

    @property
    def words(self) -> str:
        """The change as a person reads it."""
        return f"adds {', '.join(self.columns)}"


@dataclass(frozen=True)
class Renamed:
    """Other names: the table's before the change, where it had another one, and old to new names of columns."""

    table: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The change as a person reads it."""
        parts = [f"was {self.table}"] if self.table else []
        return ", ".join([*parts, *(f"{old} becomes {new}" for old, new in self.columns.items())])


@dataclass(frozen=True)
class Rewritten:
    """Rows that became other rows; `words` say how, and `rows` makes the new ones from all the old ones.

    `rows` is a function of a module, so that contracts can be pickled. It must not depend on the order of rows.
    """

    words: str
    rows: Callable[[pl.LazyFrame], pl.LazyFrame]


Change = Added | Renamed | Rewritten
