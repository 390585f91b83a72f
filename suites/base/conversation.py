"""Conversations: an item, the exchanges about it, and the functions by which a suite asks and scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.endpoints import UNKNOWN
from core.records import record
from providers.request import Failure, Reply, Request
from suites.base.sample import Sample, Skipped

Options = Mapping[str, Any]  # the suite's section of the configuration, over its defaults


@record
class Item:
    """One thing to be measured: a sample, answered by a model, judged by a judge or by rules."""

    sample: Sample
    model: str
    judge: str | None = None
    prompt_type: str = "direct"
    replicate: int = 0
    fence: str = ""  # of its sample, by the lake's secret, for a suite that is `fenced`; empty where there is no lake


@record
class Exchange:
    """A request with what came back for it."""

    prompt_hash: str
    outcome: Reply | Failure
    from_ledger: bool = False  # another run had asked; what this run asked is its own, in a retry too
    endpoint: str = UNKNOWN  # that was asked
    revision: int = 0  # of the reply; higher where an earlier one was withdrawn


@dataclass(frozen=True, slots=True)
class Recorded:
    """One line of recorded results: the item and the replies that were given, in the order of its conversation."""

    item: Item
    prompt_hashes: tuple[str, ...]
    replies: tuple[Reply, ...]


@dataclass(frozen=True)
class RecordedFolder:
    """A folder of recorded results: its lines with their places, people's labels on them, and what was left out.

    What was left out with a payload was refused; without one it is only counted, such as a file without a partner.
    """

    lines: Sequence[tuple[str, Recorded]]
    labels: Sequence[Mapping[str, Any]]  # rows of `human_labels`
    skipped: Sequence[Skipped]
    files: Mapping[str, int]  # how many files were read, by folder


# Replies so far -> the next request, or None when the conversation is done. The first request goes to the subject
# (or, where the material is already there, to the judge).
Converse = Callable[[Item, Sequence[Exchange], Options], Request | None]

# An item whose conversation is done -> its rows by table, or no rows where a failure says nothing about the model.
Score = Callable[[Item, Sequence[Exchange], Options], Mapping[str, Sequence[Mapping[str, Any]]]]
