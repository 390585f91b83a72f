"""Records of a Parquet file, whose cells may be stored once and stand in millions of rows."""

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.files import MEGABYTE
from evalake.sdk.sample import LINE_TOO_LONG, LONGEST_LINE, NOT_READ, Record, Skipped
from evalake.sdk.tabular import check_columns

LARGEST_CHUNK = 256 * MEGABYTE  # of a Parquet column, which is unpacked as a whole
WIDEST_NUMBER = 16  # bytes of one cell that is no text


def read_parquet(
    path: Path, needed: Collection[str], named: Callable[[Collection[str]], list[str]]
) -> Iterator[Record | Skipped]:
    """Read the records of a Parquet file, its columns as `named`. Raises SourceError where it cannot be read."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    number = 0
    try:
        with ParquetFile(path) as file:
            names = dict(zip(file.schema_arrow.names, named(file.schema_arrow.names), strict=True))
            check_columns(path, list(names.values()), needed)
            columns = _bounded_columns(path, file, [name for name, known in names.items() if known in needed])
            for batch in file.iter_batches(batch_size=_rows_at_once(path, file), columns=columns):
                for row in range(batch.num_rows):  # one at a time, for as Python's texts they are larger
                    where, cells = f"{path.name}: row {number + 1}", batch.slice(row, 1)
                    if cells.nbytes > LONGEST_LINE:
                        yield Skipped(where, LINE_TOO_LONG, NOT_READ)
                    else:
                        (values,) = cells.to_pylist()
                        record = {names[name]: value for name, value in values.items()}
                        yield Record(where, record, json.dumps(values, default=str))
                    number += 1
    except (ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SourceError(f"{path} cannot be read as Parquet after row {number}: {reason}") from error


def _rows_at_once(path: Path, file: Any) -> int:
    """Compute how many rows of a Parquet file are unpacked at once: few where cells are long.

    Raises:
        SourceError: A column is too large to be unpacked, however small the file is.
    """
    most = 1000
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        largest = max((group.column(index).total_uncompressed_size for index in range(group.num_columns)), default=0)
        if largest > LARGEST_CHUNK:
            raise SourceError(
                f"{path} has a column with more than {LARGEST_CHUNK // MEGABYTE} MB in one row group: write it with "
                "smaller row groups"
            )
        # A cell that is stored once may stand in every row
        most = min(most, max(1, LARGEST_CHUNK // max(largest, 1)))
    return most


def _bounded_columns(path: Path, file: Any, needed: Collection[str]) -> list[str]:
    """Choose the columns to read: those with lists only where the lists must be small.

    One row may hold a list of millions of cells that are stored once, and lists are only ever shown to people.

    Raises:
        SourceError: A column with lists that may be large is needed.
    """
    lists = set()
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        for index in range(group.num_columns):
            chunk, column = group.column(index), file.schema.column(index)
            longest = chunk.total_uncompressed_size if "BYTE_ARRAY" in chunk.physical_type else WIDEST_NUMBER
            if column.max_repetition_level and chunk.num_values * longest > LARGEST_CHUNK:
                lists.add(column.path.split(".")[0])
    if unread := lists.intersection(needed):
        raise SourceError(f"{path} has lists in the column {min(unread)!r}: a sample takes text or a number")
    return [name for name in file.schema_arrow.names if name not in lists]
