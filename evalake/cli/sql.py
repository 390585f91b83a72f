"""`evalake sql`: runs a query over the tables."""

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalake.cli import options
from evalake.cli.help import App
from evalake.cli.terminal import say
from evalake.core.configuration import whole_address
from evalake.core.errors import LakeError, UsageError
from evalake.core.files import output_file

if TYPE_CHECKING:
    import polars as pl

app = App()


HOW_TO_SEE_ALL = "select the columns that you want, or see all: --all, --json"


@app.command("sql")
def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="A query over the tables and views; `evalake tables --describe` lists them.", metavar="QUERY"
        ),
    ],
    lake: options.Lake = options.LAKE,
    at: Annotated[
        list[str] | None,
        typer.Option(help="Read a table at a version; can be repeated.", metavar="TABLE=VERSION"),
    ] = None,
    style: Annotated[
        str, typer.Option("--format", help="The format of rows.", metavar="table|json|csv|parquet")
    ] = "table",
    json: options.RowsAsJson = False,
    whole: Annotated[bool, typer.Option("--all", help="In a table, print all columns, even without room.")] = False,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option("--spreadsheet-safe", help="In CSV, put ' before text that a spreadsheet reads as a formula."),
    ] = False,
    out: Annotated[Path | None, typer.Option(help="The output file; parquet needs it.", metavar="FILE")] = None,
) -> None:
    """Run a query in DuckDB's SQL over the tables and views."""
    from evalake.storage.sql.start import start

    if json and style not in ("table", "json"):
        raise UsageError(f"--json and --format {style} contradict each other: leave one out")
    style = "json" if json else style
    if style not in ("table", "json", "csv", "parquet"):
        raise UsageError(f"--format must be table, json, csv or parquet, not {style}")
    if style == "parquet" and out is None:
        raise UsageError("--format parquet needs --out FILE")
    if spreadsheet_safe and style != "csv":
        raise UsageError("--spreadsheet-safe goes with --format csv")
    pinned = _versions(at or [])
    with start(lake) as process:  # starts while the command imports its libraries
        from evalake.storage.sql.query import open_query
        from evalake.suites.registry import all_contracts

        where = options.open_lake(lake)
        with open_query(where, all_contracts(where), query, versions=pinned, process=process) as result:
            count = _write(result.frames(), style, out, spreadsheet_safe=spreadsheet_safe, whole=whole)
    if not count and not any(map(where.exists, all_contracts(where))):
        say(f"the lake {whole_address(lake)} has no tables")
    elif not count and style == "table":
        say("no rows")
    if out is not None:
        typer.echo(f"{count} rows in {out}")


def _write(
    frames: "Iterator[pl.DataFrame]", style: str, out: Path | None, *, spreadsheet_safe: bool, whole: bool
) -> int:
    """Write the parts of a result; returns the number of rows."""
    from pyarrow import ArrowException

    from evalake.cli.output import stream
    from evalake.storage.sql.query import write_parquet

    def printed() -> int:
        form = options.Format(style)
        return stream(frames, form, spreadsheet_safe=spreadsheet_safe, whole=whole, hint=HOW_TO_SEE_ALL)

    if out is None:
        return printed()
    try:
        with output_file(out) as file:
            if style == "parquet":
                return write_parquet(frames, file)
            with TextIOWrapper(file, encoding="utf-8") as text, redirect_stdout(text):
                return printed()
    except (OSError, ArrowException) as error:
        raise LakeError(f"cannot write {out}: {getattr(error, 'strerror', None) or error}") from error


def _versions(pairs: list[str]) -> dict[str, int]:

    versions = {}
    for pair in pairs:
        table, _, version = pair.partition("=")
        if not re.fullmatch("[0-9]{1,18}", version):  # a Delta version
            raise UsageError(f"--at takes TABLE=VERSION, like samples=3, not {pair}")
        versions[table] = int(version)
    return versions
