"""Whether a model can be called is known before any call, from names and the environment alone."""

import os
import subprocess
import sys

import pytest

from evalake.core.configuration import Configuration, ModelOptions
from evalake.core.errors import ProviderError
from evalake.models.routes import find_route

NOTHING = Configuration()
LOCAL = ModelOptions(api_base="http://127.0.0.1:9/v1")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "MY_KEY"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_key_is_a_missing_key(monkeypatch: pytest.MonkeyPatch, blank: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", blank)
    monkeypatch.setenv("MY_KEY", blank)
    with pytest.raises(ProviderError, match="set OPENAI_API_KEY"):
        find_route("openai/gpt-4o-mini", NOTHING)
    with pytest.raises(ProviderError, match="needs a key: set MY_KEY"):
        find_route("openai/x", Configuration(models={"openai/x": ModelOptions(api_key_env="MY_KEY")}))


def test_a_name_too_long_to_be_kept_is_refused_before_anything_is_paid_for() -> None:
    with pytest.raises(ProviderError, match="too long for the lake"):
        find_route(f"hosted_vllm/{'x' * 300}", NOTHING)


def test_a_key_is_sent_though_the_address_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AZURE_API_KEY", "AZURE_API_BASE", "AZURE_API_VERSION"):
        monkeypatch.delenv(variable, raising=False)
    configured = Configuration(models={"azure/mine": LOCAL})
    assert find_route("azure/mine", configured).arguments["api_key"] == "no-key-needed"
    monkeypatch.setenv("AZURE_API_KEY", "k")
    assert "api_key" not in find_route("azure/mine", configured).arguments  # LiteLLM finds it


def test_models_without_keys_need_none() -> None:
    assert find_route("ollama/llama3", NOTHING).provider == "ollama"
    assert find_route("hosted_vllm/x", NOTHING).provider == "hosted_vllm"
    assert find_route("openai/local", Configuration(models={"openai/local": LOCAL})).arguments["api_key"]


@pytest.mark.parametrize("model", ["nosuch/model", "nonsense", "", "/x", "openai/", " "])
def test_an_unknown_provider_is_named(model: str) -> None:
    with pytest.raises(ProviderError) as refusal:
        find_route(model, NOTHING)
    assert repr(model) in str(refusal.value)


def test_an_unknown_baseline_is_answered_by_one_that_it_resembles() -> None:
    with pytest.raises(ProviderError, match=r"baseline/xyz; did you mean baseline/always-block"):
        find_route("baseline/xyz", NOTHING, baselines={"always-block": lambda _: ""})


def test_parameters_cannot_take_over_what_the_client_decides() -> None:
    options = ModelOptions(parameters={"timeout": 3, "num_retries": 9, "temperature": 0, "fallbacks": []})
    with pytest.raises(ProviderError, match="cannot set fallbacks, num_retries, timeout"):
        find_route("baseline/always-block", Configuration(models={"baseline/always-block": options}))


def test_importing_the_client_imports_no_heavy_library() -> None:
    heavy = {"litellm", "openai", "httpx", "aiohttp", "prefect", "pandas"}
    code = f"import sys, evalake.models.client; print(sorted({heavy!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_missing_key_is_said_without_importing_litellm() -> None:
    code = (
        "import sys\n"
        "from evalake.core.configuration import Configuration\n"
        "from evalake.core.errors import ProviderError\n"
        "from evalake.models.routes import find_route\n"
        "for model in ('gpt-4o', 'openai/gpt-4o', 'claude-haiku-4-5', 'gemini/x'):\n"
        "    try:\n"
        "        find_route(model, Configuration())\n"
        "    except ProviderError as error:\n"
        "        print(error)\n"
        "print('litellm' in sys.modules)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout.splitlines()
    assert printed == [
        "model gpt-4o needs a key: set OPENAI_API_KEY",
        "model openai/gpt-4o needs a key: set OPENAI_API_KEY",
        "model claude-haiku-4-5 needs a key: set ANTHROPIC_API_KEY",
        "model gemini/x needs a key: set GOOGLE_API_KEY or GEMINI_API_KEY",
        "False",
    ]
