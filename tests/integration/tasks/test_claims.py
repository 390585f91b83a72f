"""Runs that ask the same calls at once, each under an order of its own: every call is paid once."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalake.core.configuration import Configuration, ModelOptions
from evalake.models.client import Client
from evalake.sdk import Item
from evalake.storage.claims import Claims
from evalake.storage.lake import Lake
from evalake.storage.ledger import Key, LedgerIndex
from evalake.suites.registry import suite
from evalake.tasks.converse import Conversation, call, replay_from_ledger
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.orders import claim
from tests.servers.model_server import ModelServer

CALLS = [("a" * 64, 0, "provider"), ("a" * 64, 1, "provider")]
HOLD = """
import sys
from evalake.storage.claims import Claims
claims = Claims(sys.argv[1])
print(claims.take(("a" * 64, 0, "provider")), flush=True)
sys.stdin.readline()
"""


def test_a_call_that_several_runs_ask_at_once_is_paid_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    lake, samples = Lake(str(tmp_path / "lake")), suite("command_guard").data.read("starter").samples[:6]

    def run(run_id: str, first: int) -> list[Conversation]:
        context = RunContext(run_id, "command_guard", lake, configuration)
        asking = [Conversation(Item(sample, "openai/m", None, "direct", 0)) for sample in samples[first:]]
        index = LedgerIndex.read(lake)
        call(context, replay_from_ledger(context, asking, index).unanswered, index)
        return asking

    with ModelServer() as server:
        server.rule(reply="ALLOW", latency=0.3)
        configuration = Configuration(models={"openai/m": ModelOptions(api_base=server.api_base)})
        with ThreadPoolExecutor() as pool:
            ended = [*pool.map(run, ["one", "two"], [0, 2])]
        assert len(server.requests()) == 6
    assert all(len(each.answered) == 1 and not each.failed for runs in ended for each in runs)
    bought = [sum(not each.answered[0].from_ledger for each in runs) for runs in ended]
    assert sum(bought) == 6


def test_a_claim_of_another_process_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    claims = Claims("a lake")
    assert not claims.are_shared()
    command = [sys.executable, "-c", HOLD, "a lake"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"True\n"
        assert claims.are_shared()
        assert [claims.take(each) for each in CALLS] == [False, True]
        with Client(Configuration()) as client:  # one that stands still is not waited for without end
            assert asyncio.run(claim(claims, Key(*CALLS[0]), client, patience_seconds=0.0))
        other.kill()
        other.wait()
    assert not claims.are_shared()
    assert [claims.take(each) for each in CALLS] == [True, False]
    claims.release(CALLS)
    assert claims.take(CALLS[1])
