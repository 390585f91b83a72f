"""Keys: their names, secrets and where they are sent."""

import os
import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path

import pytest

from evalake.core.configuration import Configuration, Limits, ModelOptions
from evalake.core.errors import ProviderError
from evalake.models import litellm_internals
from evalake.models.client import Client
from evalake.models.cost import taken
from evalake.models.endpoints import KEY_VARIABLES, KEYLESS, key_of, known_provider, likely_provider, missing_variables
from evalake.models.litellm_internals import load
from evalake.models.request import Reply
from evalake.models.routes import find_route
from tests.cases import cases_beside
from tests.integration.models.support import PROVIDERS, answer, request
from tests.servers.model_server import ModelServer

CASES = cases_beside(__file__, "keys.json")

# Where a model's key comes from, and that what comes back with it is kept without it.

KEY = "kept-in-a-block-3141592653"
NAMED = Limits(api_key_secret="the-block")


def configuration(server: ModelServer, provider: str = "hosted_vllm", api_key_env: str | None = None) -> Configuration:
    options = ModelOptions(api_base=server.api_base, api_key_env=api_key_env)
    return Configuration(models={f"{provider}/m": options}, providers={provider: NAMED})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_key_in_the_secret_is_the_one_sent(model_server: ModelServer, provider: str) -> None:
    def read(name: str) -> str:
        assert name == "the-block"
        return f"  {KEY}\n"

    with Client(configuration(model_server, provider), read_secret=read) as client:
        assert isinstance(answer(client, request("x", f"{provider}/m")), Reply)
    assert model_server.seen[0].authorization == f"Bearer {KEY}"


def test_a_secret_is_read_when_the_first_call_needs_it_and_once(model_server: ModelServer) -> None:
    read_by: list[str] = []

    def read(name: str) -> str:
        read_by.append(threading.current_thread().name)
        return KEY

    with Client(configuration(model_server), read_secret=read) as client:
        assert read_by == []
        client.run([client.call(request(str(number))) for number in range(40)])
    assert len(read_by) == 1
    assert read_by[0] != "evalake-calls"  # which would hold up all calls of the process


def test_the_next_client_reads_the_secret_again(model_server: ModelServer) -> None:
    for key in ("the-first-key-1", "the-second-key-2"):
        with Client(configuration(model_server), read_secret=lambda _, key=key: key) as client:  # type: ignore[misc]
            answer(client, request("x"))
    assert [seen.authorization for seen in model_server.seen] == ["Bearer the-first-key-1", "Bearer the-second-key-2"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_models_own_variable_goes_before_its_providers_secret_and_variable(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-usual-one")
    monkeypatch.setenv("MY_KEY", "of-the-variable")
    with Client(configuration(model_server, provider, api_key_env="MY_KEY")) as client:
        answer(client, request("x", f"{provider}/m"))
    assert model_server.seen[0].authorization == "Bearer of-the-variable"


def test_a_secret_that_nobody_can_read_or_that_is_empty_is_said(model_server: ModelServer) -> None:
    with pytest.raises(ProviderError, match="in the secret the-block, which only a Prefect flow can read"):
        find_route("hosted_vllm/m", configuration(model_server))
    with pytest.raises(ProviderError, match="the secret the-block is empty"):
        find_route("hosted_vllm/m", configuration(model_server), lambda _: " \n")


def test_a_route_does_not_show_its_key(model_server: ModelServer) -> None:
    route = find_route("hosted_vllm/m", configuration(model_server), lambda _: KEY)
    assert route.arguments["api_key"] == KEY
    assert KEY not in repr(route)


def test_a_key_among_the_parameters_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "neither-shaped-like-one")
    for value in ("Bearer abcdefgh12345", "neither-shaped-like-one", "sk-abcdefgh12345678"):
        options = ModelOptions(parameters={"extra_headers": {"authorization": value}})
        with pytest.raises(ProviderError, match="its parameters hold a key") as refusal:
            find_route("baseline/always-block", Configuration(models={"baseline/always-block": options}))
        assert value not in str(refusal.value)


@pytest.mark.parametrize("name", ["", "Upper", "with space", "../x", "a/b"])
def test_a_block_has_a_name_that_prefect_gives_blocks(name: str) -> None:
    with pytest.raises(ValueError, match="api_key_secret"):
        Limits(api_key_secret=name)


# The table of variables that hold keys is LiteLLM's.


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


# What is wished for is asked for where the model takes it and nobody configured anything else.

WISHED = {"temperature": 0, "seed": 5}


@pytest.mark.parametrize(("model", "takes"), CASES["takes"])
def test_a_model_is_asked_for_what_it_takes(model: str, takes: dict[str, float]) -> None:
    assert taken(model, WISHED, {}) == takes


@pytest.mark.parametrize(
    ("configured", "left"),
    [
        ({"temperature": 0.7}, {"seed": 5}),
        ({"top_p": 0.9}, {"seed": 5}),
        ({"reasoning_effort": "high"}, {"seed": 5}),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, {"seed": 5}),
        ({"seed": 1}, {"temperature": 0}),
        ({"max_tokens": 300}, WISHED),
    ],
)
def test_what_is_configured_of_sampling_leaves_no_temperature_to_wish_for(
    configured: dict[str, object], left: dict[str, float]
) -> None:
    assert taken("openai/gpt-4o", WISHED, configured) == left


def test_a_schema_is_asked_of_models_that_litellm_knows_to_take_one() -> None:
    wished = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}}
    asked = {
        model: taken(model, wished, {}) for model in ("openai/gpt-4o", "openai/gpt-3.5-turbo", "hosted_vllm/judge")
    }
    assert asked == {"openai/gpt-4o": wished, "openai/gpt-3.5-turbo": {}, "hosted_vllm/judge": {}}
    assert taken("openai/gpt-4o", wished, {"response_format": {"type": "text"}}) == {}


# LiteLLM as it is imported: without a network, without a file of the working directory, and quiet.

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import logging, socket

def refuse(*_: object) -> None:
    raise AssertionError("the network was used")

socket.socket.connect = refuse
from evalake.models.litellm_internals import load
litellm = load()
assert load() is litellm
import os
print(os.environ.get("LEFT_LYING"), litellm.telemetry, len(litellm.model_cost) > 1000)
logging.getLogger("LiteLLM").warning("this is of no interest")
logging.getLogger("LiteLLM").error("api_key=sk-abcdefgh12345678 was refused")
"""


def test_its_import_asks_no_network_reads_no_file_and_logs_errors_without_keys(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LEFT_LYING=here")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, "None False True\n"), done.stderr
    assert "was refused" in done.stderr
    assert "sk-abcdefgh12345678" not in done.stderr
    assert "of no interest" not in done.stderr


def test_litellm_is_of_the_version_in_which_its_inner_names_were_seen() -> None:
    assert version("litellm").startswith(f"{litellm_internals.SEEN_IN}."), "look through litellm_internals.py again"
