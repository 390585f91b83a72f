"""A configuration that came with a folder sends no key of the environment to a host of its choice."""

import json
from pathlib import Path

import pytest

from evalake.core.configuration import Configuration, read_configuration
from evalake.core.errors import ProviderError
from evalake.models.client import Client
from evalake.models.request import Reply
from evalake.models.routes import find_route
from tests.integration.models.support import answer, request
from tests.servers.model_server import ModelServer

KEY = "sk-of-the-user-3141592653"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(model: str, file: Path | None = None, **options: object) -> Configuration:
    """The configuration as the folder has it, or as the user names that file."""
    lines = [f'[models."{model}"]', *(f"{name} = {json.dumps(value)}" for name, value in options.items())]
    Path("evalake.toml").write_text("\n".join(lines))
    return read_configuration(file)


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/m", "OPENAI_API_KEY"),
        ("hosted_vllm/m", "HOSTED_VLLM_API_KEY"),
        ("anthropic/m", "ANTHROPIC_AUTH_TOKEN"),
        ("together_ai/m", "TOGETHERAI_API_KEY"),
        ("azure/m", "ANYTHING"),
        ("bedrock/m", "ANYTHING"),
    ],
)
def test_a_key_of_the_environment_goes_to_no_host_that_the_folder_names(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    monkeypatch.setenv(variable, KEY)
    configuration = configured(model, api_base=model_server.api_base)
    with pytest.raises(ProviderError, match=r"127\.0\.0\.1.* would go there; .*--trust-folder"):
        find_route(model, configuration)
    assert not model_server.seen


@pytest.mark.parametrize("provider", ["huggingface", "oobabooga"])
def test_nor_to_a_host_in_the_name_of_the_model_behind_an_innocent_one(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    variable = f"{provider.upper()}_API_KEY"
    monkeypatch.setenv(variable, KEY)
    real = f"{provider}/{model_server.api_base}"
    Path("evalake.toml").write_text(
        f'[models."openai/m"]\nmodel = "{real}"\n[models."{real}"]\napi_key_env = "{variable}"\n'
    )
    with pytest.raises(ProviderError, match=r"an address in its name.*--trust-folder"):
        find_route("openai/m", read_configuration())
    assert find_route("openai/m", read_configuration(Path("evalake.toml"))).arguments["api_key"] == KEY


def test_it_goes_where_a_file_that_the_user_names_sends_it(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Client(configured("openai/m", Path("evalake.toml"), api_base=model_server.api_base)) as client:
        assert isinstance(answer(client, request("x", "openai/m")), Reply)
    assert model_server.seen[0].authorization == f"Bearer {KEY}"


def test_a_folders_own_server_is_asked_without_a_key(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)  # another provider's
    with Client(configured("openai/m", api_base=model_server.api_base)) as client:
        assert isinstance(answer(client, request("x", "openai/m")), Reply)
    assert model_server.seen[0].authorization == "Bearer no-key-needed"


@pytest.mark.parametrize("base", ["http://api.openai.com/v1", "https://api.openai.com.evil.example/v1", "http://[bad"])
def test_what_only_looks_like_the_providers_host_is_another(monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises((ProviderError, ValueError), match=r"would go there|Invalid IPv6"):
        find_route("openai/m", configured("openai/m", api_base=base))


def test_the_providers_own_host_and_the_environments_get_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    own = find_route("openai/m", configured("openai/m", api_base="https://api.openai.com/v2"))
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    gateway = find_route("openai/m", configured("openai/m", api_base="https://gateway.example/v1/"))
    # Without one in its arguments, a route leaves it to LiteLLM to read the variable
    assert own.arguments.get("api_key", KEY) == gateway.arguments.get("api_key", KEY) == KEY


def test_the_folder_chooses_no_other_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", KEY)
    with pytest.raises(ProviderError, match="sends GITHUB_TOKEN to openai"):
        find_route("openai/m", configured("openai/m", api_key_env="GITHUB_TOKEN"))
