"""A judge that answers when a test lets it, and what the test tells it to."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.e2e.processes import PATIENCE_SECONDS
from tests.servers.model_server import ModelServer

GOOD = """The agent asked in the right order, but stopped early.

Logical flow: 16/25
Consistency: 17/25
Tool relevance: 18/25
Synthesis quality: 17/25

68"""
TOOLS = "1. **pg-stat-activity**: it would have shown who holds the connections."
NO_TOTAL = "I would rather not say."


class Judge:
    """Rules of the model server: the first answer, then the missing tools."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.first_answer = GOOD
        self._may_answer = threading.Event()
        self._may_answer.set()
        server.rule(reply=self._reply)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Until the end of the block the judge answers nothing."""
        self._may_answer.clear()
        try:
            yield
        finally:
            self._may_answer.set()

    @contextmanager
    def saying(self, first_answer: str) -> Iterator[None]:
        """Within the block, the judge's first answer is this."""
        self.first_answer = first_answer
        try:
            yield
        finally:
            self.first_answer = GOOD

    def _reply(self, messages: Sequence[Mapping[str, Any]]) -> str:
        assert self._may_answer.wait(PATIENCE_SECONDS), "no test let the judge answer"
        answers = [message["content"] for message in messages if message["role"] == "assistant"]
        is_second_turn = any(str(answer).rstrip().endswith("68") for answer in answers)
        return TOOLS if is_second_turn else self.first_answer
