"""Texts of items, read by key for one page: the beginnings of inputs and replies, and whole ones for a file."""

from collections.abc import Sequence

import polars as pl

from evalake.contracts.tables import CALLS, RUN_ITEMS, SAMPLES
from evalake.contracts.tables.ledger import CALL_KEY
from evalake.sdk.json_in_text import split_thinking
from evalake.server.viewer.run_index import RunIndex
from evalake.storage.lake import Lake

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
