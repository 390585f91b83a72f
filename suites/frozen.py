"""Frozen items: samples with the answers that subjects gave, kept for ever, so that nothing but a judge can change."""

import json
from pathlib import Path

from contracts.errors import UsageError
from contracts.hashing import content_hash
from providers.request import Reply
from suites.base import Answered, Item, Sample
from suites.sources import STARTER

FOLDER = STARTER / "canary"
SUBJECT = "canary"  # whose answers they are; no judge is told


def frozen_suites() -> tuple[str, ...]:
    """The suites that have frozen items, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.jsonl")))


def frozen_items(suite: str, judge: str, replicate: int) -> list[tuple[Item, list[Answered]]]:
    """The suite's frozen items for a judge, each with what was answered before the judge's turn.

    Raises UsageError where the suite has none.
    """
    file = Path(FOLDER, f"{suite}.jsonl")
    if suite not in frozen_suites():
        raise UsageError(f"{suite} has no frozen items to judge: choose one of {', '.join(frozen_suites())}")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [
        (
            Item(Sample(suite, **line["sample"]), SUBJECT, judge, line["prompt_type"], replicate),
            [Answered(content_hash([answer]), Reply(answer), from_ledger=True) for answer in line["answers"]],
        )
        for line in lines
    ]
