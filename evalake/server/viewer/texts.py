"""Texts of items, read by key for one page; and what a filter keeps, as a file: a row an answer, with its texts."""

from collections.abc import Iterator, Sequence
from tempfile import TemporaryFile
from typing import IO, Literal

import polars as pl
from pydantic import Field

from evalake.contracts.tables import CALLS, RUN_ITEMS, SAMPLES
from evalake.contracts.tables.ledger import CALL_KEY
from evalake.sdk.json_in_text import split_thinking
from evalake.server.viewer.items import Matching, Wanted, matching
from evalake.server.viewer.run_index import RunIndex, RunIndexes
from evalake.storage.lake import Lake
from evalake.storage.sql.query import write_csv, write_parquet
from evalake.storage.sql.start import MEGABYTE

PREVIEW = 240  # characters of an input, or of a reply, that a list shows
MOST_NEAR = 50  # samples like another
_NEAR = 0.1  # of their words are common at least
_COMPARED = 4000  # characters of an input that are compared
_WITH_THINKING = 20_000  # characters of a reply in which the end of its thinking is looked for


def beginnings(lake: Lake, index: RunIndex, hashes: Sequence[str]) -> dict[str, str]:
    """Read the beginnings of samples' inputs, or the few words in which their suite describes them, by sample hash."""
    brief = index.suite.presentation.viewing.input_brief
    text = pl.col("input") if brief else pl.col("input").str.head(PREVIEW)
    rows = lake.frame(SAMPLES).filter(pl.col("suite") == index.suite.name, pl.col("sample_hash").is_in(list(hashes)))
    texts = rows.select("sample_hash", text).unique("sample_hash").collect().iter_rows()
    return {sample_hash: brief(kept)[:PREVIEW] if brief else kept for sample_hash, kept in texts}


def nearest(lake: Lake, index: RunIndex, sample_hash: str) -> dict[str, float]:
    """Find the samples whose inputs share most words with one's, itself first: the shares by sample hash."""
    words = pl.col("input").str.head(_COMPARED).str.to_lowercase().str.extract_all(r"\w+").list.unique()
    datasets = pl.col("dataset").is_in(index.samples["dataset"].unique().to_list())
    rows = lake.frame(SAMPLES).filter(pl.col("suite") == index.suite.name, datasets)
    texts = rows.select("sample_hash", words=words).unique("sample_hash").collect()
    texts = texts.join(index.samples, on="sample_hash", how="semi")
    its = texts.filter(sample_hash=sample_hash).rename({"words": "its"}).select("its")
    if its.is_empty():
        return {}
    both, either = pl.col("words").list.set_intersection("its"), pl.col("words").list.set_union("its")
    shared = texts.join(its, how="cross").select("sample_hash", share=both.list.len() / either.list.len())
    found = shared.filter((pl.col("share") >= _NEAR) | (pl.col("sample_hash") == sample_hash))
    ranked = found.sort(pl.col("sample_hash") != sample_hash, -pl.col("share"), "sample_hash").head(MOST_NEAR)
    return dict(ranked.iter_rows())


def beginnings_of_replies(lake: Lake, index: RunIndex, hashes: Sequence[str]) -> dict[tuple[str, int, int], str]:
    """Read the beginnings of replies, without their thinking, by sample hash, hash of the request's key, replicate."""
    rows = replies(lake, index, hashes, _WITH_THINKING)
    keys = rows.select("sample_hash", "asked", "replicate").iter_rows()
    return {key: split_thinking(text)[0].strip()[:PREVIEW] for key, text in zip(keys, rows["response"], strict=True)}


def replies(lake: Lake, index: RunIndex, hashes: Sequence[str], most: int | None = None) -> pl.DataFrame:
    """Read the replies to samples, each once: sample_hash, asked, replicate, response; those without text are left out.

    `asked` is the hash of the request's key, as the index has it; `most` are the characters that are read of each.
    """
    text = pl.col("response") if most is None else pl.col("response").str.head(most)
    items = lake.frame(RUN_ITEMS).filter(
        pl.col("run_id") == index.run["run_id"], pl.col("sample_hash").is_in(list(hashes))
    )
    keys = items.select("sample_hash", *CALL_KEY).unique().collect()
    models = [*index.run["models"], *index.run["judges"]]
    wanted = pl.col("model").is_in(models), pl.col("prompt_hash").is_in(keys["prompt_hash"].unique().to_list())
    calls = lake.frame(CALLS).filter(*wanted)
    newest = calls.sort(-pl.col("reply_revision"), "ledger_version", "answered_at").unique(
        list(CALL_KEY), keep="first", maintain_order=True
    )
    found = newest.select(*CALL_KEY, text).drop_nulls("response").collect()
    return (
        keys.join(found, on=list(CALL_KEY))
        .select("sample_hash", pl.col("prompt_hash").hash().alias("asked"), "replicate", "response")
        .unique(["sample_hash", "asked", "replicate"])
    )


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
