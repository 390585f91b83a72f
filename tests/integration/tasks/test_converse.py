"""Conversations go on from the ledger: what it holds is not asked, and what it lacks is named."""

from dataclasses import replace
from pathlib import Path

from evalake.core.configuration import Configuration
from evalake.sdk import Item
from evalake.storage.lake import Lake
from evalake.storage.ledger import LedgerIndex, append
from evalake.suites.registry import suite
from evalake.tasks.converse import Conversation, next_request, replay_from_ledger
from evalake.tasks.runtime.context import RunContext
from tests.integration.storage.rows import call

SAMPLES = suite("command_guard").data.read("starter").samples[:3]


def test_what_the_ledger_holds_has_ended_and_the_rest_needs_a_call(tmp_path: Path) -> None:
    context = RunContext("run", "command_guard", Lake(str(tmp_path / "lake")), Configuration())
    asking = [Conversation(Item(sample, "a/model", None, "direct", 0)) for sample in SAMPLES]
    requests = [next_request(context, conversation) for conversation in asking]
    known = [request.prompt_hash for request in requests if request is not None][:2]
    append(context.lake, [{**call(0, run_id="another"), "prompt_hash": prompt, "model": "a/model"} for prompt in known])

    replay = replay_from_ledger(context, asking, LedgerIndex.read(context.lake))
    assert [conversation.first_hash for conversation in replay.ended] == known
    assert all(exchange.from_ledger for conversation in replay.ended for exchange in conversation.answered)
    (left,) = replay.unanswered
    assert left is asking[2]
    assert left.next_hash == requests[2].prompt_hash  # type: ignore[union-attr]


def test_a_revised_baseline_misses_the_replies_of_its_older_rules_and_another_does_not(tmp_path: Path) -> None:
    context = RunContext("run", "command_guard", Lake(str(tmp_path / "lake")), Configuration())
    revised, first = (
        next_request(context, Conversation(Item(SAMPLES[0], f"baseline/{name}", None, "direct", 0)))
        for name in ("shell-patterns", "always-block")
    )
    assert revised is not None
    assert first is not None
    assert (revised.revision, first.revision) == ("4", None)
    assert revised.prompt_hash != replace(revised, revision=None).prompt_hash
