"""What the ledger answers is handed over, and nothing is asked."""

from collections.abc import Sequence
from pathlib import Path

from evalake.tasks.converse import Conversation
from evalake.tasks.walk import walk
from tests.integration.tasks.test_estimate import MODEL, answer, planned


class Sink:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.replayed: list[Conversation] = []
        self.called: list[Conversation] = []

    def add_replayed(self, conversations: Sequence[Conversation]) -> None:
        self.replayed += conversations

    def add(self, conversations: Sequence[Conversation]) -> None:
        self.called += conversations


def test_a_run_that_the_ledger_answers_calls_nothing(tmp_path: Path) -> None:
    context, plan = planned(tmp_path, models=[MODEL], limit=12)
    answer(context, plan, 12)
    sink = Sink()
    walk(context, plan, sink)
    assert len(sink.replayed) == 12
    assert sink.called == []
    assert all(exchange.from_ledger for conversation in sink.replayed for exchange in conversation.answered)
