"""A roadmap: what results name as missing, to be grouped by meaning, counted and ranked over many results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from contracts.contract import Contract

MENTIONS = pl.Schema(
    {
        "kind": pl.String,  # a key of `Roadmap.kinds`
        "name": pl.String,
        "text": pl.String,  # why it was named; null where nothing is said
        "sample_hash": pl.String,
        "sample_id": pl.String,
        "score": pl.Float64,  # the sample's
    }
)
"""The columns of what was named: one row for each kind, name and sample."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of things that are named."""

    title: str
    by_meaning: bool  # False: names of it are a vocabulary, and equal where they mean the same
    rule: Callable[[str], str] | None = None  # a name's theme where no judge groups; None: by the words in common


@dataclass(frozen=True, slots=True)
class Labelled:
    """Something named, with the theme that it belongs to as people see it."""

    name: str
    text: str
    theme: str
    held_out: bool  # whether no rule was chosen by looking at it


@dataclass(frozen=True)
class Roadmap:
    """How a roadmap is made of a suite's results."""

    title: str
    best: float  # the highest score, where nothing is missing
    kinds: Mapping[str, Kind]
    tables: tuple[Contract, ...]  # what is read of the lake
    mentions: Callable[[Mapping[str, pl.LazyFrame]], pl.DataFrame]  # rows by table -> the columns of MENTIONS
    scored: Callable[[Mapping[str, pl.LazyFrame]], int]  # how many samples have a score
    labelled: Callable[[], Mapping[str, Sequence[Labelled]]]  # by kind: on which ways of grouping are measured
