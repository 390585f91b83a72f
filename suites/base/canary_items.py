"""Frozen items: samples with the answers that subjects gave, kept for ever, so that nothing but a judge can change."""

import json

from core.errors import UsageError
from core.files import Files
from core.hashing import content_hash
from providers.request import Reply
from suites.base import Exchange, Item, Sample
from suites.registry import suite_folders

_FILE = "canary.jsonl"
SUBJECT = "canary"  # the items' model, which no judge is told


def canary_suites() -> tuple[str, ...]:
    """List the suites that have frozen items, sorted."""
    return tuple(name for name, folder in suite_folders().items() if (folder / _FILE).is_file())


def canary_items(suite: str, judge: str, replicate: int) -> list[tuple[Item, list[Exchange]]]:
    """Read the suite's frozen items for a judge, each with what was answered before the judge's turn.

    Raises UsageError where the suite has none.
    """
    if suite not in canary_suites():
        raise UsageError(f"{suite} has no frozen items to judge: choose one of {', '.join(canary_suites())}")
    folder = suite_folders()[suite]
    lines = [json.loads(line) for line in Files(folder).read(folder / _FILE).decode("utf-8").splitlines()]
    return [
        (
            Item(Sample(suite, **line["sample"]), SUBJECT, judge, line["prompt_type"], replicate),
            [Exchange(content_hash([answer]), Reply(answer), from_ledger=True) for answer in line["answers"]],
        )
        for line in lines
    ]
