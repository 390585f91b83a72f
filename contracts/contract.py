"""A contract: the row model of a table, its key, and every rule its rows are held to."""

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

# How a table's schema changed since its first version: each change as data, in the order in which they were made.


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


# How rows from before the column `endpoint` get one: by a change of each table that names calls.


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


BROKEN = "broken"  # the column that the audit adds to refused rows; no table may have one of that name


Row = Mapping[str, Any]
"""One row of a table, its values by column."""

LONGEST_FOLDER = 240  # bytes of a partition's value in its folder's name, of which file systems allow 255


class RowModel(BaseModel):
    """Base of all row models: frozen, closed, each field with a description.

    Field types are str, int, float, bool, datetime (UTC), a list of one of these, a Literal of strings, and any of
    them `| None`. Nested data is a string of JSON, so that every engine can read the tables.
    """

    # Columns and types are looked at in every command; what validates a row is built where one is validated
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    @classmethod
    def column_names(cls) -> Sequence[str]:
        """List the columns in the order of the table: as they are declared, unless a row model overrides this."""
        return list(cls.model_fields)


@dataclass(frozen=True, slots=True)
class Column:
    """One column as its row model declares it."""

    name: str
    type: Any  # the declared type without `| None`; a list type stays a list type
    nullable: bool
    description: str

    @property
    def base(self) -> type:
        """The type without its details: str for a Literal, list for any list."""
        origin = get_origin(self.type)
        return str if origin is Literal else origin or self.type

    @property
    def element(self) -> Any:
        """The type of a list's elements; of any other column its own, without details."""
        return next(iter(get_args(self.type)), None) if self.base is list else self.base

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """The strings a Literal column may hold; None for any other column."""
        return get_args(self.type) if get_origin(self.type) is Literal else None


ALWAYS = "TRUE"  # as `replaced_when`: the table holds how things stand


@dataclass(frozen=True)
class Contract:
    """What a table is and what its rows must be.

    `key` identifies a row. `partition_by` columns are functions of the key; code that takes their values from
    outside checks them with `fits_folder`. A row stays as it first landed, unless `replaced_when` says (in SQL over
    `old` and `new`) when a later row of the same key takes its place. `changes` lead from the table's first schema to
    this one.
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
    suite: str | None = None  # the suite whose result rows these are; None for every other table

    def __post_init__(self) -> None:
        for flaw in _flaws(self):
            raise ContractError(f"the contract of table {self.table} contradicts itself: {flaw}")

    def __hash__(self) -> int:
        """Hash the table's name and row model, for rules hold mappings, which cannot be hashed."""
        return hash((self.table, self.row))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the columns in place of the row model, for processes that cannot import the suite it belongs to."""
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
        """The names that the table had before, the latest first."""
        renamed = (change.table for change in reversed(self.changes) if isinstance(change, Renamed))
        return tuple(name for name in renamed if name)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Every row rule: those that follow from the column types, then those declared."""
        return (*_rules_of_types(self.columns), *self.row_rules)

    @cached_property
    def all_rules(self) -> tuple[Rule | TableRule, ...]:
        """List the rules of rows, and behind them those of the table."""
        return (*self.rules, *self.table_rules)

    @cached_property
    def table_rules(self) -> tuple[TableRule, ...]:
        """Every table rule: the unique key (except in an append-only log), then those declared."""
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
    """Tell whether a folder of a partitioned table can have the value as its name, which Delta percent-encodes."""
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


# Which columns of a table hold an answer, and on which scale: what its contract declares decides.


Scale: TypeAlias = tuple[float, float] | None
"""The two ends of a number's scale; None for an answer that is a word: two words are equal or not, no more."""


def scales(contract: Contract) -> Mapping[str, Scale]:
    """Find the columns that hold answers: those of a fixed vocabulary (true and false are one), and bounded numbers."""
    scales: dict[str, Scale] = {}
    for column in contract.columns:
        if column.name == "origin":
            continue  # has a fixed vocabulary, but says where the row comes from
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
