"""Refused lines in quarantine that are about samples: by their hash, their text or their name."""

import json
from collections.abc import Collection

import polars as pl

from contracts.tables import QUARANTINE, SAMPLES
from storage.lake import Lake
from tasks.jobs.forget.by_text import holding
from tasks.jobs.forget.choice import Choice, streamed

SHORTEST_TEXT = 12  # characters of an input that is looked for in refused lines: "ls" stands in many


def refused(lake: Lake, choice: Choice, kept: Collection[str]) -> set[str]:
    """Find the keys of rows in quarantine that hold a sample's hash, its input, a line of that, or its name."""
    texts = _texts(choice)
    # Other lines of a dataset version may be about other people
    versions = set() if _shares_versions(lake, choice) else set(choice.samples["dataset_version"])
    batches = {f"extract:{version}" for version in versions}
    keys = holding(lake, choice, kept, lake.frame(QUARANTINE).select(key="row_key", text="payload"))
    for key, batch, payload in streamed(lake.frame(QUARANTINE).select("row_key", "batch_id", "payload")):
        if batch in batches or _names(payload, choice) or any(text in payload for text in texts):
            keys.add(key)
    return keys


def _texts(choice: Choice) -> set[str]:
    inputs = {text for text in choice.samples["input"] if len(text) >= SHORTEST_TEXT}
    texts = {*choice.hashes, *inputs, *(json.dumps(text)[1:-1] for text in inputs)}
    texts |= {json.dumps(text, ensure_ascii=False)[1:-1] for text in inputs}
    session = choice.session
    return texts | ({session} if session and len(session) >= SHORTEST_TEXT else set())


def _shares_versions(lake: Lake, choice: Choice) -> bool:
    """Tell whether the dataset versions of the samples hold other samples, too."""
    of_versions = pl.col("dataset_version").is_in(choice.samples["dataset_version"].unique().to_list())
    other = ~pl.col("sample_hash").is_in(sorted(choice.hashes))
    return bool(lake.frame(SAMPLES).filter(of_versions, other).select(pl.len()).collect().item())


def _names(payload: str, choice: Choice) -> bool:
    """Tell whether a refused line is JSON that names one of the samples, or the session or dataset to forget."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    if choice.dataset is not None and value.get("dataset") == choice.dataset:
        return True
    if choice.session is not None and value.get("session_id") == choice.session:
        return True
    return any(value.get("sample_id") == name and value.get("dataset", of) == of for of, name in choice.names)
