"""What a filter keeps, as a file: a row an answer, with its texts. CSV cells that a spreadsheet would run get a `'`."""

from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, Literal

import polars as pl
from pydantic import Field

from evalake.contracts.tables import SAMPLES
from evalake.server.viewer.items import Matching, Wanted, matching
from evalake.server.viewer.run_index import RunIndex, RunIndexes
from evalake.server.viewer.texts import replies
from evalake.storage.lake import Lake
from evalake.storage.sql.query import write_csv, write_parquet
from evalake.storage.sql.start import MEGABYTE

IN_BATCH = 200  # items whose texts are read at once


class WantedFile(Wanted):
    """Which items are wanted, and as what kind of file."""

    format: Literal["csv", "jsonl", "parquet"] = Field(description="The kind of file.")


def items_file(indexes: RunIndexes, run_id: str, wanted: WantedFile) -> Iterator[bytes]:
    """Write the answers that match as a file, and return its parts. Raises as `item_page` does."""
    index = indexes.of(run_id)
    found = matching(indexes, index, wanted)
    file = TemporaryFile()  # noqa: SIM115 - for as long as it is sent
    try:
        frames = _frames(indexes.lake, index, found)
        if wanted.format == "csv":
            write_csv(frames, file, spreadsheet_safe=True)
        elif wanted.format == "parquet":
            write_parquet(frames, file)
        else:
            for frame in frames:
                frame.write_ndjson(file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return parts_of(file)


def parts_of(file: IO[bytes]) -> Iterator[bytes]:
    """Read a file in parts, and close it."""
    with file:
        while part := file.read(MEGABYTE):
            yield part


def _frames(lake: Lake, index: RunIndex, found: Matching) -> Iterator[pl.DataFrame]:
    """Yield the answers in the order of their items; one frame without rows where nothing matches."""
    answers = found.answers.filter(pl.col("matches").fill_null(True))
    for first in range(0, max(found.items.height, 1), IN_BATCH):
        items = found.items.slice(first, IN_BATCH).with_row_index("order")
        hashes = items["sample_hash"].to_list()
        inputs = lake.frame(SAMPLES).filter(pl.col("suite") == index.suite.name, pl.col("sample_hash").is_in(hashes))
        texts = inputs.select("sample_hash", "input").unique("sample_hash").collect()
        rows = answers.join(items, on="place").join(texts, on="sample_hash", how="left")
        told = rows.join(replies(lake, index, hashes), on=["sample_hash", "asked", "replicate"], how="left")
        yield (
            told.sort("order", "model", "prompt_type", "judge", "replicate")
            .select(
                *("dataset", "sample_id", "category", "label", "model", "judge", "prompt_type", "replicate"),
                *("verdict", "correct", "score", "error", *index.measures, *index.flags),
                "input",
                pl.col("response").alias("reply"),
            )
            .with_columns(pl.col(pl.Categorical).cast(pl.String))
        )
