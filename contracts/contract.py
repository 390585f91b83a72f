"""Contracts: the row model of a table, its key, its rules, and the changes of its schema."""

import re
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin
from urllib.parse import quote

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, create_model

from evalake.contracts.rule import Dimension, Kind, Rule, Severity, TableKind, TableRule
from evalake.core.configuration import UNKNOWN
from evalake.core.errors import ContractError


@dataclass(frozen=True)
class Added:
    """A change that added nullable columns; older rows hold null."""

    columns: tuple[str, ...]

    @property
    def words(self) -> str:
        """The change as a person reads it."""
        return f"adds {', '.join(self.columns)}"


@dataclass(frozen=True)
class Renamed:
    """A change of names: `table` is the former name of the table, `columns` maps old to new column names."""

    table: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The change as a person reads it."""
        parts = [f"was {self.table}"] if self.table else []
        return ", ".join([*parts, *(f"{old} becomes {new}" for old, new in self.columns.items())])


@dataclass(frozen=True)
class Rewritten:
    """A change that computes new rows from all old ones by `rows`; `words` describe it.

    `rows` is a module-level function, or a partial one, so that contracts can be pickled. A query's process imports its
    module, so one of `contracts` is best. It must not depend on the order of rows.
    """

    words: str
    rows: Callable[[pl.LazyFrame], pl.LazyFrame]


Change = Added | Renamed | Rewritten


def with_text(rows: pl.LazyFrame, column: str) -> pl.LazyFrame:
    """Add a column of text, null in every row."""
    return rows.with_columns(pl.lit(None, pl.String).alias(column))


def _with_endpoint(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.with_columns(endpoint=pl.lit(UNKNOWN), reply_revision=pl.lit(0, pl.Int64))


def _with_endpoints(rows: pl.LazyFrame) -> pl.LazyFrame:
    rows = _with_endpoint(rows)
    return rows.with_columns(judge_endpoint=pl.lit(UNKNOWN)) if "judge_hash" in rows.collect_schema() else rows


def _with_endpoints_of_items(rows: pl.LazyFrame) -> pl.LazyFrame:
    judged = pl.when(pl.col("judge_hash").is_not_null()).then(pl.lit(UNKNOWN))
    return rows.with_columns(endpoint=pl.lit(UNKNOWN), judge_endpoint=judged)


_WORDS = f"names the endpoint that answered ({UNKNOWN} for rows from before)"
ENDPOINT_OF_CALLS = Rewritten(f"{_WORDS}, and the revision of a reply (0)", _with_endpoint)
ENDPOINTS_OF_RESULTS = Rewritten(f"{_WORDS}, and the revision of the replies (0)", _with_endpoints)
ENDPOINTS_OF_ITEMS = Rewritten(_WORDS, _with_endpoints_of_items)


BROKEN = "broken"  # the column that the audit adds to refused rows, so no table may have it


Row = Mapping[str, Any]
"""One row of a table, its values by column."""

LONGEST_FOLDER = 240  # bytes of a partition's value in its folder's name; file systems allow 255


class RowModel(BaseModel):
    """Base of all row models: frozen, closed, each field with a description.

    Field types are str, int, float, bool, datetime (UTC), a list of one of these, a Literal of strings, and any of
    them `| None`. Nested data is a string of JSON, so that every engine can read the tables.
    """

    # Commands read columns and types; validators are built at their first use
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    @classmethod
    def column_names(cls) -> Sequence[str]:
        """List the columns in the order of the table, which is that of their declaration by default."""
        return list(cls.model_fields)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a row model."""

    name: str
    type: Any  # the declared type without `| None`; a list type stays a list type
    nullable: bool
    description: str

    @property
    def base(self) -> type:
        """The plain type: str for a Literal, list for any list."""
        origin = get_origin(self.type)
        return str if origin is Literal else origin or self.type

    @property
    def element(self) -> Any:
        """The type of a list's elements, or of any other column's values."""
        return next(iter(get_args(self.type)), None) if self.base is list else self.base

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """The strings a Literal column may hold; None for any other column."""
        return get_args(self.type) if get_origin(self.type) is Literal else None


ALWAYS = "TRUE"  # for `replaced_when`: the newest row of a key replaces the others


@dataclass(frozen=True)
class Contract:
    """The declaration of a table and its rows.

    `key` identifies a row. `partition_by` columns are functions of the key; code checks foreign values of them by
    `fits_folder`. The first row of a key stays, unless `replaced_when` (SQL over `old` and `new`) lets a later row
    replace it. `changes` lead from the table's first schema to this one.
    """

    table: str
    row: type[RowModel]
    key: tuple[str, ...]
    description: str
    row_rules: tuple[Rule, ...] = ()
    extra_table_rules: tuple[TableRule, ...] = ()
    partition_by: tuple[str, ...] = ()
    replaced_when: str | None = None
    append_only: bool = False
    changes: tuple[Change, ...] = ()
    suite: str | None = None  # the suite of a result table

    def __post_init__(self) -> None:
        for flaw in _flaws(self):
            raise ContractError(f"the contract of table {self.table} contradicts itself: {flaw}")

    def __hash__(self) -> int:
        """Hash the table's name and row model; rules hold unhashable mappings."""
        return hash((self.table, self.row))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the columns instead of the row model, for processes that cannot import its suite."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "row"}
        described = self.row.model_fields
        columns = [(n, described[n].annotation, described[n].description or "") for n in self.row.column_names()]
        return _unpickled, (self.row.__name__, self.row.__doc__, columns, values)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns in the order of the row model."""
        return tuple(_columns(self.row))

    @cached_property
    def column(self) -> Mapping[str, Column]:
        """The columns by name."""
        return {column.name: column for column in self.columns}

    @property
    def schema_version(self) -> int:
        """The version of the table's schema, from 1."""
        return 1 + len(self.changes)

    @property
    def former_tables(self) -> tuple[str, ...]:
        """The table's former names, the latest first."""
        renamed = (change.table for change in reversed(self.changes) if isinstance(change, Renamed))
        return tuple(name for name in renamed if name)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """All row rules: those of the column types, then the declared ones."""
        return (*_rules_of_types(self.columns), *self.row_rules)

    @cached_property
    def all_rules(self) -> tuple[Rule | TableRule, ...]:
        """List the rules of rows, and behind them those of the table."""
        return (*self.rules, *self.table_rules)

    @cached_property
    def table_rules(self) -> tuple[TableRule, ...]:
        """All table rules: the unique key (except in an append-only log), then the declared ones."""
        unique = TableRule("key_unique", TableKind.UNIQUE, {"columns": self.key}, dimension=Dimension.UNIQUENESS)
        return (*(() if self.append_only else (unique,)), *self.extra_table_rules)


def _unpickled(
    name: str, description: str | None, columns: Sequence[tuple[str, Any, str]], values: dict[str, Any]
) -> Contract:
    fields: dict[str, Any] = {column: (kind, Field(description=words)) for column, kind, words in columns}
    return Contract(row=create_model(name, __base__=RowModel, __doc__=description, **fields), **values)


def _columns(row: type[RowModel]) -> Iterator[Column]:
    for name in row.column_names():
        field = row.model_fields[name]
        declared, nullable = _without_none(field.annotation)
        yield Column(name, declared, nullable, field.description or "")


def _without_none(declared: Any) -> tuple[Any, bool]:
    if get_origin(declared) not in (Union, types.UnionType):
        return declared, False
    (inner,) = (part for part in get_args(declared) if part is not type(None))
    return inner, True


def _rules_of_types(columns: tuple[Column, ...]) -> Iterator[Rule]:
    for column in columns:
        name = column.name
        if not column.nullable:
            yield Rule(f"{name}_present", name, Kind.PRESENT, dimension=Dimension.COMPLETENESS)
        if column.type is float:
            yield Rule(f"{name}_finite", name, Kind.FINITE, dimension=Dimension.ACCURACY)
        if column.allowed:
            yield Rule(f"{name}_known", name, Kind.ONE_OF, {"values": column.allowed}, Severity.ERROR)


_COLUMN_TYPES: Mapping[Kind, tuple[type, ...]] = {
    Kind.FINITE: (float,),
    Kind.NOT_BLANK: (str,),
    Kind.ONE_OF: (str,),
    Kind.BETWEEN: (int, float),
    Kind.MATCHES: (str,),
    Kind.NOT_ABOVE: (int, float, datetime),
    Kind.EMPTY: (list,),
}


def fits_folder(value: str) -> bool:
    """Tell whether the percent-encoded value fits in the name of a partition's folder."""
    return len(quote(value, safe="", errors="replace")) <= LONGEST_FOLDER


def _flaws(contract: Contract) -> Iterator[str]:
    columns = contract.column
    for name, column in columns.items():
        if name == BROKEN or not re.fullmatch("[a-z][a-z0-9_]*", name):
            yield f"a column cannot be called {name}"
        if column.element not in (str, int, float, bool, datetime):
            yield f"no table can hold the type of the column {name}"
    if not contract.key:
        yield "it has no key"
    rules = contract.all_rules
    for name in (*contract.key, *contract.partition_by, *(name for rule in rules for name in rule.columns)):
        if name not in columns:
            yield f"the row has no column {name}"
    for name in contract.key:
        if columns[name].nullable:
            yield f"the key column {name} may be null"
    for change in contract.changes:
        added = change.columns if isinstance(change, Added) else ()
        if filled := [name for name in added if name in columns and not columns[name].nullable]:
            yield f"the added column {filled[0]} may not be null, and rows from before have nothing in it"
    for rule_id, count in Counter(rule.id for rule in rules).items():
        if count > 1:
            yield f"two rules are called {rule_id}"
    for rule in contract.rules:
        allowed, declared = _COLUMN_TYPES.get(rule.kind), columns[rule.column].base
        if allowed and declared not in allowed:
            yield f"the rule {rule.id} of kind {rule.kind} does not fit the type of {rule.column}"
        if rule.kind is Kind.NOT_ABOVE and columns[rule.parameters["other"]].base is not declared:
            yield f"the rule {rule.id} compares columns of different types"


Scale: TypeAlias = tuple[float, float] | None
"""The ends of a number's scale; None for an answer in words."""


def scales(contract: Contract) -> Mapping[str, Scale]:
    """Find the columns with answers: words of a fixed vocabulary, booleans, and numbers between two bounds."""
    scales: dict[str, Scale] = {}
    for column in contract.columns:
        if column.name == "origin":
            continue  # the source of the row, not an answer
        if column.base is bool or column.allowed:
            scales[column.name] = None
        elif (ends := _ends(column, contract)) is not None:
            scales[column.name] = ends
    return scales


def _ends(column: Column, contract: Contract) -> tuple[float, float] | None:
    for rule in contract.rules:
        if rule.column == column.name and rule.kind is Kind.BETWEEN and column.base in (int, float):
            low, high = rule.parameters["minimum"], rule.parameters["maximum"]
            if low is not None and high is not None and low < high:
                return low, high
    return None
