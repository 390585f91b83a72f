"""Who a model's replies come from: its declared name, its address without keys, or its provider."""

import pytest

from evalake.core.configuration import IN_PROCESS, PROVIDER, UNKNOWN, UNSET, Configuration, ModelOptions
from evalake.models.endpoints import endpoint_of

ADDRESSES = ("OPENAI_API_BASE", "OPENAI_BASE_URL", "AZURE_API_BASE", "OLLAMA_API_BASE", "HOSTED_VLLM_API_BASE")


@pytest.fixture(autouse=True)
def no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ADDRESSES:
        monkeypatch.delenv(name, raising=False)


def at(base: str | None, model: str = "openai/m") -> str:
    return endpoint_of(model, Configuration(models={model: ModelOptions(api_base=base)})).name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-4o-mini", PROVIDER),
        ("gpt-4o-mini", PROVIDER),
        ("bedrock/some.model", PROVIDER),
        ("baseline/shell_patterns", IN_PROCESS),
        ("ollama/llama3", "http://localhost:11434"),
        ("hosted_vllm/m", UNSET),
        ("azure/m", UNSET),
    ],
)
def test_a_model_without_an_address_is_answered_by_its_provider(model: str, name: str) -> None:
    assert endpoint_of(model, Configuration()).name == name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://127.0.0.1:8000/v1", "HTTP://127.0.0.1:8000/v1/"),
        ("https://lab.example/v1", "https://LAB.example:443/v1?version=1#part"),
        ("http://lab.example", "http://lab.example:80/"),
    ],
)
def test_one_address_is_one_endpoint_however_it_is_written(one: str, other: str) -> None:
    assert at(one) == at(other)


def test_an_endpoint_is_an_origin_and_a_hash_of_the_path() -> None:
    assert at("http://127.0.0.1:8000") == "http://127.0.0.1:8000"
    assert at("http://[::1]:8000") == "http://[::1]:8000"
    origin, _, path = at("http://Lab.example:8000/secret-path/v1?version=1").partition("#")
    assert (origin, len(path)) == ("http://lab.example:8000", 16)
    assert at("http://lab.example/a") != at("http://lab.example/b") != at("http://lab.example")


def test_the_providers_own_address_is_the_provider_and_no_other_is() -> None:
    assert at("https://api.openai.com/v1") == PROVIDER
    for other in ("http://api.openai.com/v1", "https://api.openai.com.example/v1", "https://api.openai.com:8443/v1"):
        assert at(other) != PROVIDER
    assert at("not an address at all") != PROVIDER
    assert at("http://lab:port/v1") != PROVIDER


@pytest.mark.parametrize(("variable", "model"), [(name, f"{name.rsplit('_', 2)[0].lower()}/m") for name in ADDRESSES])
def test_the_environment_names_addresses_too(variable: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "http://lab.example:9")
    assert endpoint_of(model, Configuration()).name == "http://lab.example:9"
    own = Configuration(models={model: ModelOptions(api_base="http://own.example")})
    assert endpoint_of(model, own).name == "http://own.example"


def test_a_declared_name_stands_for_whatever_address() -> None:
    lab = {"api_base": "http://127.0.0.1:1", "endpoint": "lab"}
    given = {"models": {"hosted_vllm/m": lab}, "providers": {"hosted_vllm": {"endpoint": "shelf"}}}
    configured = Configuration.model_validate(given)
    assert endpoint_of("hosted_vllm/m", configured).name == "lab"
    assert endpoint_of("hosted_vllm/other", configured).name == "shelf"


def test_replies_of_unknown_endpoints_answer_for_providers_and_where_they_are_adopted() -> None:
    assert endpoint_of("openai/m", Configuration()).answering == (PROVIDER, UNKNOWN)
    assert endpoint_of("hosted_vllm/m", Configuration()).answering == (UNSET,)
    lab = ModelOptions(api_base="http://lab.example", adopt_unknown_endpoint=True)
    adopting = Configuration(models={"hosted_vllm/m": lab})
    assert endpoint_of("hosted_vllm/m", adopting).answering == ("http://lab.example", UNKNOWN)
