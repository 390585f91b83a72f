"""`evalake tables`: lists the tables, or describes their columns."""

from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from evalake.cli.options import LAKE, Format, LakeOption, RowsAsJsonOption, StyleOption, style_of

if TYPE_CHECKING:
    from evalake.storage.lake import Lake

COLUMNS = ("table", "rows", "changed_at", "version", "files", "bytes", "description")


def tables(
    table: Annotated[str | None, typer.Argument(help="Describe only this table or view.", metavar="TABLE")] = None,
    describe: Annotated[
        bool, typer.Option("--describe", help="List columns, types, keys and rules, with views.")
    ] = False,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
) -> None:
    """List the tables, most recently changed first; or describe their columns."""
    from evalake.cli import output as show
    from evalake.storage.cached_table import inventory
    from evalake.storage.lake import Lake
    from evalake.suites.registry import all_contracts

    style = style_of(style, as_json=json)

    if describe or table is not None:
        _describe(Lake(lake), table, style)
    else:
        show.listing("tables", inventory(Lake(lake), all_contracts(Lake(lake))), lake, style, COLUMNS)


def _describe(lake: "Lake", table: str | None, style: Format) -> None:

    from evalake.cli import output as show
    from evalake.storage.sql.catalogue import COLUMN_FIELDS, catalogue, column_frame
    from evalake.suites.registry import all_contracts

    entries = catalogue(all_contracts(lake), table)
    if style is Format.json:
        show.as_json(list(map(asdict, entries)))
    elif style is Format.csv:
        show.rows(column_frame(entries), style)
    else:
        for entry in entries:
            show.line("")
            for text in (f"{entry.kind} {entry.name}: {entry.description}", *(f"  {rule}" for rule in entry.rules)):
                for part in wrap(text, show.width(), subsequent_indent="    ", break_on_hyphens=False):
                    show.line(part)
            show.rows(column_frame([entry]), style, list(COLUMN_FIELDS))
