"""Where a model's key comes from, and that what comes back with it is kept without it."""

import threading

import pytest

from evalake.core.configuration import Configuration, Limits, ModelOptions
from evalake.core.errors import ProviderError
from evalake.models.client import Client
from evalake.models.request import Reply
from evalake.models.routes import find_route
from tests.integration.models.support import PROVIDERS, answer, request
from tests.servers.model_server import ModelServer

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


def test_a_models_own_variable_goes_before_its_providers_secret(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "of-the-variable")
    with Client(configuration(model_server, api_key_env="MY_KEY")) as client:
        answer(client, request("x"))
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
