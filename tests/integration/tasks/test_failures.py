"""Failures are told by model and kind with a first reason, and land once a call."""

from pathlib import Path
from typing import Any

from evalake.core.configuration import read_configuration
from evalake.models.request import Failure
from evalake.sdk import Exchange, Item
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.tasks.converse import Conversation
from evalake.tasks.failures import FailureCounter
from evalake.tasks.runtime.context import RunContext

(SAMPLE, *_) = suite("command_guard").data.read("starter").samples


def context(folder: Path) -> RunContext:
    file = folder / "evalake.toml"
    file.write_text('[models."a/model"]\napi_base = "http://127.0.0.1:9/v1"\n')
    return RunContext("run", "command_guard", Lake(str(folder / "lake")), read_configuration(file))


def failed(kind: Any, prompt: str, model: str = "a/model") -> Conversation:
    failure = Failure(kind, f"{kind} of {prompt}", 3)
    return Conversation(Item(SAMPLE, model, None, "direct", 0), prompt, [Exchange(prompt, failure)])


def test_they_are_told_by_model_with_its_address_and_the_first_reason(tmp_path: Path) -> None:
    counter = FailureCounter(context(tmp_path))
    for conversation in (failed("timeout", "p"), failed("rate_limit", "q"), failed("rate_limit", "r")):
        counter.add(conversation)
    counter.add(failed("timeout", "s", "another/model"))
    assert counter.kinds == {"timeout": 2, "rate_limit": 2}
    first, second = str(counter).split("; ")
    assert first.startswith("a/model at http://127.0.0.1:9/v1: ")
    assert first.endswith(": 2 rate_limit, 1 timeout (timeout of p)")
    assert second == "another/model: 1 timeout (timeout of s)"
