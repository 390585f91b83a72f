"""What the ledger answers is handed over, and nothing is asked."""

from pathlib import Path

from evalake.tasks.converse import Conversation
from evalake.tasks.walk import walk
from tests.integration.tasks.test_estimate import MODEL, answer, planned


def test_a_run_that_the_ledger_answers_calls_nothing(tmp_path: Path) -> None:
    context, plan = planned(tmp_path, models=[MODEL], limit=12)
    answer(context, plan, 12)
    ended: list[Conversation] = []
    walk(context, plan, ended.extend)
    assert len(ended) == 12
    assert all(exchange.from_ledger for conversation in ended for exchange in conversation.answered)
