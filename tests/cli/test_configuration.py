"""The configuration that lies in a folder is told, and gets no key of the user's unless the folder is trusted."""

from pathlib import Path

from tests.cli.command import evalake
from tests.cli.hostile import markers
from tests.servers.model_server import ModelServer


def test_the_folders_configuration_is_told_with_its_servers_and_gets_no_key(
    hostile: Path, model_server: ModelServer
) -> None:
    (hostile / "evalake.toml").write_text(f'[models."openai/m"]\napi_base = "{model_server.api_base}"\n')
    ask = ("run", "command_guard", "--models", "openai/m", "--first", 1, "--dry-run")
    home = {
        "XDG_CONFIG_HOME": str(hostile.parent),
        "OPENAI_API_KEY": "sk-of-the-user-3141592653",
        "PYTHONSAFEPATH": "1",
    }
    refused = evalake(*ask, folder=hostile, **home)
    assert refused.returncode == 2
    assert f"openai/m: {model_server.api_base}" in refused.stderr
    assert "OPENAI_API_KEY would go there" in refused.stderr
    trusted = evalake(*ask, "--trust-folder", folder=hostile, **home)
    assert trusted.returncode == 0, trusted.stderr
    assert "1 to call" in trusted.stdout
    assert not model_server.seen
    assert markers(hostile) == []
