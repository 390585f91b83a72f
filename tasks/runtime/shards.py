"""Shards: equal parts of a run's items, that several flow runs ask at the same time and none of them twice."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import UsageError
from tasks.steps.converse import Conversation

_HEX_DIGITS = 15  # of a hash, which decide its shard


@dataclass(frozen=True)
class Shard:
    """The items whose first request falls to part `number` (from 1) `of` so many: no two parts ask the same."""

    number: int
    of: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise UsageError(f"there is no shard {self}: the first of two is 1/2")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read a shard as it is written, such as 2/4. Raises UsageError for any other text."""
        if not (match := re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)):
            raise UsageError(f"a shard is written like 2/4, not {text[:40]!r}")
        return cls(int(match[1]), int(match[2]))

    def has(self, conversation: Conversation) -> bool:
        """Tell whether a conversation, whose first request is known, is of this part."""
        return int(conversation.first_hash[:_HEX_DIGITS], 16) % self.of == self.number - 1


WHOLE = Shard(1, 1)


class ShardCollector:
    """Takes what a shard's walk brings, and keeps nothing: the ledger has it for the run's own walk."""

    def add_replayed(self, conversations: Sequence[Conversation]) -> None:
        """Keep nothing of what the ledger answered."""

    def add(self, conversations: Sequence[Conversation]) -> None:
        """Keep nothing of what calls answered."""
