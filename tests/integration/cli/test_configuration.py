"""The configuration that lies in a folder is told, and gets no key of the user's unless the folder is trusted."""

import sys
from pathlib import Path

import pytest

from evalake.cli.configuration import command
from evalake.cli.options import LAKE
from tests.integration.cli.command import evalake_here
from tests.servers.model_server import ModelServer


def test_the_folders_configuration_is_told_with_its_servers_and_gets_no_key(
    tmp_path: Path, model_server: ModelServer
) -> None:
    (folder := tmp_path / "theirs").mkdir()
    (folder / "evalake.toml").write_text(f'[models."openai/m"]\napi_base = "{model_server.api_base}"\n')
    ask = ("run", "command_guard", "--models", "openai/m", "--first", 1, "--dry-run")
    home = {"XDG_CONFIG_HOME": str(tmp_path), "OPENAI_API_KEY": "sk-of-the-user-3141592653"}
    refused = evalake_here(*ask, folder=folder, **home)
    assert refused.returncode == 2
    assert f"openai/m: {model_server.api_base}" in refused.stderr
    assert "OPENAI_API_KEY would go there" in refused.stderr
    trusted = evalake_here(*ask, "--trust-folder", folder=folder, **home)
    assert trusted.returncode == 0, trusted.stderr
    assert "1 to call" in trusted.stdout
    assert not model_server.seen


def test_a_command_line_to_go_on_with_has_the_options_that_are_not_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["evalake", "compare"])
    assert command("compare", "a b", "c", metric=None, lake=LAKE, run="r") == "evalake compare 'a b' c --run r"
    assert command("show", "r", lake="s3://other") == "evalake show r --lake s3://other"
