"""A contract: the row model of a table, its key, and every rule its rows are held to."""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

from contracts.rules import Dimension, Kind, Rule, Severity, TableKind, TableRule


class Row(BaseModel):
    """Base of all row models: frozen, closed, each field with a description.

    Field types are str, int, float, bool, datetime (UTC), a Literal of strings, a list of one of these, and any of
    them `| None`. Nested data is a string of JSON, so that every engine can read the tables.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


@dataclass(frozen=True, slots=True)
class Column:
    """One column as its row model declares it."""

    name: str
    type: Any  # the declared type without `| None`; a list type stays a list type
    nullable: bool
    description: str

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """The strings a Literal column may hold; None for any other column."""
        return get_args(self.type) if get_origin(self.type) is Literal else None


@dataclass(frozen=True)
class Contract:
    """What a table is and what its rows must be.

    `key` identifies a row. `partition_by` columns are functions of the key. A row stays as it first landed, unless
    `replaced_when` says (in SQL over `old` and `new`) when a later row of the same key takes its place.
    """

    table: str
    row: type[Row]
    key: tuple[str, ...]
    description: str
    row_rules: tuple[Rule, ...] = ()
    extra_table_rules: tuple[TableRule, ...] = ()
    partition_by: tuple[str, ...] = ()
    replaced_when: str | None = None
    append_only: bool = False

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns in the order of the row model."""
        return tuple(_columns(self.row))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Every row rule: those that follow from the column types, then those declared."""
        return (*_rules_of_types(self.columns), *self.row_rules)

    @cached_property
    def table_rules(self) -> tuple[TableRule, ...]:
        """Every table rule: the unique key (except in an append-only log), then those declared."""
        unique = TableRule("key_unique", TableKind.UNIQUE, {"columns": self.key}, dimension=Dimension.UNIQUENESS)
        return (*(() if self.append_only else (unique,)), *self.extra_table_rules)


def _columns(row: type[Row]) -> Iterator[Column]:
    for name, field in row.model_fields.items():
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
