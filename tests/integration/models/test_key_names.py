"""The table of variables that hold keys is LiteLLM's."""

import os

import pytest

from evalake.models.endpoints import KEY_VARIABLES, KEYLESS, key_of, known_provider, likely_provider, missing_variables
from evalake.models.litellm_setup import load


@pytest.mark.parametrize("provider", sorted(KEY_VARIABLES))
def test_the_table_of_keys_is_litellms(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in os.environ:
        if variable.endswith(("_API_KEY", "_TOKEN")):
            monkeypatch.delenv(variable)
    missing = load().validate_environment(f"{provider}/m")["missing_keys"]
    assert {name for name in missing if name.endswith("_API_KEY")} <= set(KEY_VARIABLES[provider])


@pytest.mark.parametrize("provider", sorted(KEYLESS))
def test_providers_without_keys_miss_none(provider: str) -> None:
    assert not [name for name in load().validate_environment(f"{provider}/m")["missing_keys"] if "KEY" in name]


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "o3", "o4-mini", "claude-haiku-4-5"])
def test_a_bare_name_is_of_the_provider_litellm_says(model: str) -> None:
    assert likely_provider(model) == load().get_llm_provider(model)[1]


def test_the_first_variable_that_holds_something_is_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "  ")
    monkeypatch.delenv("CO_API_KEY", raising=False)
    assert (key_of("cohere"), missing_variables("cohere")) == (None, ("COHERE_API_KEY", "CO_API_KEY"))
    monkeypatch.setenv("CO_API_KEY", " the-second \n")
    assert (key_of("cohere"), missing_variables("cohere")) == ("the-second", ())


@pytest.mark.parametrize("model", ["gpt-4o", "nobody/m", "openai/", "/m"])
def test_of_a_name_without_a_known_provider_litellm_is_asked(model: str) -> None:
    assert known_provider(model) is None
