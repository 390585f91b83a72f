"""Rows that no key connects with a sample any more, found by the sample's text in them.

A run that was cut off leaves such rows behind: a judge's reply is in the ledger, and no result names it. A text is
looked for line by line, for prompts number, cut and quote what they show. A line that anything kept holds as well does
not tell whose row it is, and is not looked for.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

import polars as pl

from contracts.tables import CALL_FAILURES, CALLS, JUDGE_CANARIES, SAMPLES
from storage.lake import Lake
from tasks.jobs.forget.choice import CHUNK_ROWS, TEXTS, Choice, streamed

SHORTEST_PIECE = 20  # characters: shorter lines, such as the name of a tool, stand in many prompts
LONGEST_PIECE = 80  # characters: a longer line is looked for in parts, for prompts cut what is long

_NO_LETTERS = re.compile(r"[\W\d_]+")


def orphans(lake: Lake, choice: Choice, known: Collection[str], kept: Collection[str]) -> set[str]:
    """Find calls, answered or given up on, that hold a line of these samples alone; returns their prompt hashes.

    Args:
        lake: The lake.
        choice: The samples.
        known: Prompts that are known to be asked about these samples.
        kept: Prompts that are asked about samples that stay.
    """
    canaries = lake.frame(JUDGE_CANARIES).select("run_id").collect()["run_id"].unique().to_list()
    is_open = ~pl.col("prompt_hash").is_in(sorted({*known, *kept})) & ~pl.col("run_id").is_in(canaries)
    calls = lake.frame(CALLS).filter(is_open, pl.col("origin") == "call").select(key="prompt_hash", text="request")
    failures = lake.frame(CALL_FAILURES).filter(is_open).select(key="prompt_hash", text="message")
    return holding(lake, choice, kept, calls) | holding(lake, choice, kept, failures)


def holding(lake: Lake, choice: Choice, kept: Collection[str], rows: pl.LazyFrame) -> set[str]:
    """Find the `key` of each row whose `text` holds a line of these samples alone, or one of their whole inputs."""
    others = lake.frame(SAMPLES).filter(~pl.col("sample_hash").is_in(sorted(choice.hashes)))
    asked = lake.frame(CALLS).filter(pl.col("prompt_hash").is_in(sorted(kept)))
    pieces = _standing(rows, {piece for text in choice.texts for piece in _pieces(text)})
    for staying in (*(others.select(text=name) for name in TEXTS), asked.select(text="request")):
        pieces -= _standing(staying, pieces)
    keys = _with_whole(rows, others, choice)
    if pieces:
        holds = pl.col("text").str.contains_any(sorted(_forms(pieces)))
        keys.update(rows.filter(holds).select("key").collect()["key"])
    return keys


def _with_whole(rows: pl.LazyFrame, others: pl.LazyFrame, choice: Choice) -> set[str]:
    """Find the `key` of each row whose `text` holds a whole input, by letters alone, even if others share each line."""
    whole = {letters for text in choice.samples["input"] if len(letters := _letters(text)) >= SHORTEST_PIECE}
    for (text,) in streamed(others.select("input")):
        letters = _letters(text)
        whole -= {each for each in whole if each in letters}
    keys = set()
    for key, text in streamed(rows.drop_nulls()) if whole else ():
        letters = _letters(text)
        if any(each in letters for each in whole):
            keys.add(key)
    return keys


def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", "".join(_texts(text)))


def _standing(rows: pl.LazyFrame, pieces: Collection[str]) -> set[str]:
    """Find the pieces that occur in a `text`, as they are or as JSON has them."""
    if not pieces:
        return set()
    forms = _forms(pieces)
    matches = pl.col("text").str.extract_many(sorted(forms), overlapping=True).list.unique()
    standing: set[str] = set()
    for chunk in rows.select("text").drop_nulls().collect_batches(chunk_size=CHUNK_ROWS):
        standing.update(forms[form] for form in chunk.select(matches)["text"].explode().drop_nulls().unique())
    return standing


def _forms(pieces: Collection[str]) -> dict[str, str]:
    """Map each way in which a piece may be written to the piece: plain, in JSON, and in JSON within JSON."""
    forms = {}
    for piece in pieces:
        quoted = json.dumps(piece, ensure_ascii=False)[1:-1]
        for form in (piece, quoted, json.dumps(quoted, ensure_ascii=False)[1:-1], json.dumps(piece)[1:-1]):
            forms[form] = piece
    return forms


def _pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text, or of all texts in its JSON, in pieces, without those too short to tell anything."""
    for part in _texts(text):
        for line in map(str.strip, part.splitlines()):
            pieces = (line[start : start + LONGEST_PIECE] for start in range(0, len(line), LONGEST_PIECE))
            yield from (piece for piece in pieces if len(piece) >= SHORTEST_PIECE)


def _texts(text: str) -> Iterator[str]:
    """Yield all texts in a JSON object or list; any other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    yield from _leaves(value if isinstance(value, dict | list) else text)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
