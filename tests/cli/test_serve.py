"""`evalake serve`: what it refuses before it listens."""

from pathlib import Path

import pytest

from tests.cli.command import evalake_here


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--port", "65536"), "--port"),
        (("--config", "missing.toml"), "missing.toml"),
        (("--host", "0.0.0.0"), "EVALAKE_API_TOKEN"),
        (("--sessions", "postgresql://me@127.0.0.1:9/tarsy?sslmode=require"), "takes no parameter 'sslmode'"),
        (("--sessions", "postgresql://127.0.0.1:9/tarsy"), "names no user"),
        (("--sessions", "mysql://me@127.0.0.1:9/tarsy"), "mysql://me@127.0.0.1:9/tarsy"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    done = evalake_here("serve", *arguments, folder=tmp_path, EVALAKE_API_TOKEN="")
    assert done.returncode == 2
    assert told in done.stderr
    assert "Error" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
