"""Variants of one model under names: asked as the real one, each with its parameters, side by side in one run."""

from pathlib import Path

import pytest

from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError, UsageError
from evalake.models.request import Request
from evalake.request import RunRequest
from evalake.sdk import Item, Sample
from evalake.storage.lake import Lake
from evalake.tasks.converse import Conversation, next_request
from evalake.tasks.preflight import check
from evalake.tasks.runtime.context import RunContext

REAL = "openai/o4"
CONFIGURED = {
    REAL: {"api_base": "http://127.0.0.1:9/v1", "parameters": {"temperature": 0.0, "seed": 1}},
    "careful": {"model": REAL, "parameters": {"reasoning_effort": "high", "seed": 2}},
    "newer": {"model": REAL, "revision": "2026-11"},
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with a fence makes the lake's secret: not in the checkout."""
    monkeypatch.chdir(tmp_path)


def asked(model: str, configuration: Configuration) -> Request:
    sample = Sample("command_guard", "mine", "1", "ls", label="harmless")
    context = RunContext("run", "command_guard", Lake("unused"), configuration)
    request = next_request(context, Conversation(Item(sample, model)))
    assert request is not None
    return request


def test_a_variant_asks_the_real_model_with_its_own_parameters_over_the_real_ones() -> None:
    configuration = Configuration.model_validate({"models": CONFIGURED})
    plain, careful, newer = (asked(model, configuration) for model in (REAL, "careful", "newer"))
    assert {plain.model, careful.model, newer.model} == {REAL}
    assert careful.parameters == {"temperature": 0.0, "seed": 2, "reasoning_effort": "high"}
    assert newer.parameters == plain.parameters
    assert len({plain.prompt_hash, careful.prompt_hash, newer.prompt_hash}) == 3
    assert b'"revision":"2026-11"' in newer.canonical


def test_what_is_configured_under_a_name_is_hashed_like_the_real_model_asked_so() -> None:
    named = Configuration.model_validate({"models": {"careful": {"model": REAL, "parameters": {"seed": 2}}}})
    real = Configuration.model_validate({"models": {REAL: {"parameters": {"seed": 2}}}})
    assert asked("careful", named).prompt_hash == asked(REAL, real).prompt_hash


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('[models.a]\nmodel = "openai/o4"\napi_base = "http://here"', "set them for openai/o4"),
        ('[models.a]\nmodel = "b"\n[models.b]\nmodel = "openai/o4"', "b is an alias; give the model it stands for"),
    ],
)
def test_a_name_leads_to_one_real_model(tmp_path: Path, lines: str, said: str) -> None:
    file = tmp_path / "evalake.toml"
    file.write_text(lines)
    with pytest.raises(ConfigurationError, match=said):
        check(RunRequest("command_guard", lake=str(tmp_path / "lake"), configuration_file=file))


def test_variants_stand_side_by_side_and_one_model_under_two_names_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    file = tmp_path / "evalake.toml"
    quick = f'[models.quick]\nmodel = "{REAL}"\nparameters.seed = 3'
    file.write_text(f'[models.careful]\nmodel = "{REAL}"\nrevision = "2"\n{quick}')
    names = ("careful", "quick", REAL)
    order = RunRequest("command_guard", lake=str(tmp_path / "lake"), models=names, configuration_file=file)
    assert check(order).models == names
    file.write_text(f'[models.careful]\nmodel = "{REAL}"\n{quick}')
    with pytest.raises(UsageError, match=f"careful and {REAL} are one model"):
        check(order)
