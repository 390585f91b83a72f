"""A stored request as commands: what a shell and Python get is the request, and no text in it is run."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalake.core.configuration import Configuration, ModelOptions, read_configuration
from evalake.core.errors import ProviderError
from evalake.models.again import ask_again

KEY = "sk-test-0123456789abcdefghijklmnop"
HOSTILE = "it's \"$OPENAI_API_KEY\" `touch pwned` $(touch pwned)\n\\'; touch pwned; '\\x41 {model} é\u2028"


def request(model: str = "openai/gpt-4o-mini", **parameters: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": HOSTILE}], **parameters}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.mark.parametrize(
    ("model", "address", "header"),
    [
        ("openai/gpt-4o-mini", "https://api.openai.com/v1/chat/completions", f"Authorization: Bearer {KEY}"),
        ("anthropic/claude-3-5-haiku-latest", "https://api.anthropic.com/v1/messages", f"x-api-key: {KEY}"),
    ],
)
def test_curl_gets_the_request_and_the_key_of_its_variable(
    model: str, address: str, header: str, tmp_path: Path
) -> None:
    curl = ask_again(request(model, temperature=0), Configuration()).curl
    assert curl is not None
    assert KEY not in curl
    script = f'curl() {{ printf "%s\\0" "$@"; }}\n{curl}'
    said = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=True)
    given = said.stdout.decode().split("\0")

    assert given[0] == address
    assert header in given
    body = json.loads(given[given.index("--data-raw") + 1])
    content = body["messages"][0]["content"]
    assert (content if isinstance(content, str) else content[0]["text"]) == HOSTILE
    assert body["temperature"] == 0
    assert list(tmp_path.iterdir()) == []


def test_python_asks_the_same(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {}
    choice = SimpleNamespace(message=SimpleNamespace(content="the reply"))

    def completion(**given: Any) -> SimpleNamespace:
        asked.update(given)
        return SimpleNamespace(choices=[choice])

    python = ask_again(request(temperature=0.5), Configuration()).python
    assert KEY not in python
    monkeypatch.setitem(sys.modules, "litellm", SimpleNamespace(completion=completion))
    exec(compile(python, "again.py", "exec"), {})

    assert asked == {**request(temperature=0.5), "api_key": KEY}
    assert capsys.readouterr().out == "the reply\n"


def test_a_model_of_ones_own_server_is_asked_there_without_a_key() -> None:
    options = {"hosted_vllm/mine": ModelOptions(api_base="http://127.0.0.1:9/v1")}
    commands = ask_again(request("hosted_vllm/mine"), Configuration(models=options))

    assert commands.curl is not None
    assert commands.curl.startswith("curl 'http://127.0.0.1:9/v1/chat/completions'")
    assert "api_base='http://127.0.0.1:9/v1'" in commands.python
    assert ask_again(request("ollama/llama3"), Configuration()).curl is None


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (request("baseline/always-allow"), "baseline"),
        (request("nobody/knows"), "unknown"),
        ({"model": "openai/gpt-4o-mini"}, "unknown"),
        (request(user=KEY), "holds a key"),
    ],
)
def test_what_nobody_can_be_asked_is_told_in_a_sentence(asked: dict[str, Any], reason: str) -> None:
    with pytest.raises(ProviderError, match=reason):
        ask_again(asked, Configuration())


def test_a_file_that_is_not_trusted_sends_no_key_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evalake.toml").write_text('[models."openai/gpt-4o-mini"]\napi_base = "http://elsewhere.example"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProviderError, match=r"elsewhere\.example"):
        ask_again(request(), read_configuration(None))
