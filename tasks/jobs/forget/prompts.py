"""The prompts that were asked about samples: by the tables that name both, by conversation, and by import."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from contracts.contract import Contract
from contracts.tables import CALLS
from core.hashing import content_hash
from storage.lake import Lake
from tasks.jobs.forget.choice import Choice, streamed


def asked_about(lake: Lake, contracts: Iterable[Contract], samples: set[str]) -> tuple[set[str], set[str]]:
    """Find the prompts that were asked about these samples, and those that were asked about all others."""
    ours: set[str] = set()
    others: set[str] = set()
    for contract in contracts:
        if "sample_hash" not in contract.column:
            continue
        for name in ("prompt_hash", "judge_hash"):
            if name in contract.column:
                asked = lake.frame(contract).select("sample_hash", name).drop_nulls().unique().collect()
                mine = asked["sample_hash"].is_in(sorted(samples))
                ours.update(asked.filter(mine)[name])
                others.update(asked.filter(~mine)[name])
    return ours, others


def conversations(lake: Lake, prompts: set[str]) -> set[str]:
    """Find these prompts, and all of the same conversations: what came before them, and what followed."""
    if not prompts:
        return set()
    whole: set[str] = set()
    begun: set[str] = set()
    for _, messages in _requests(lake, pl.col("prompt_hash").is_in(sorted(prompts))):
        hashes = _beginnings(messages)
        begun.update(hashes[:-1])
        whole.add(hashes[-1])
    connected = set(prompts)
    for prompt, messages in _requests(lake):
        hashes = _beginnings(messages)
        if hashes[-1] in begun or whole.intersection(hashes):
            connected.add(prompt)
    return connected


def imported(lake: Lake, choice: Choice) -> set[str]:
    """Find the prompt hashes of imported replies about these samples, whose requests name dataset and sample."""
    names = choice.names
    prompts = set()
    rows = lake.frame(CALLS).filter(pl.col("origin") == "import").select("prompt_hash", "request")
    for prompt, request in streamed(rows):
        about = json.loads(request)
        if (about.get("dataset"), about.get("sample_id")) in names:
            prompts.add(prompt)
    return prompts


def _beginnings(messages: list[Any]) -> list[str]:
    return [content_hash(messages[:length]) for length in range(1, len(messages) + 1)]


def _requests(lake: Lake, which: pl.Expr | None = None) -> Iterator[tuple[str, list[Any]]]:
    """Yield prompt hash and messages of the requests in the ledger."""
    calls = lake.frame(CALLS).filter(pl.col("origin") == "call")
    calls = calls if which is None else calls.filter(which)
    for prompt, request in streamed(calls.select("prompt_hash", "request")):
        if messages := json.loads(request).get("messages"):
            yield prompt, messages
