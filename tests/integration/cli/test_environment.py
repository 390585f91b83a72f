"""A server that a command starts has a password; one that the user names keeps its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.command import ROOT

SHOW = """
import os
from evalake.cli.environment import prepare
prepare()
for name in ("PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_SERVER_CORS_ALLOWED_ORIGINS"):
    print(os.environ.get(name, ""))
"""
PROFILES = """
active = "mine"
[profiles.mine]
PREFECT_API_URL = "http://127.0.0.1:4200/api"
"""


def prepared(home: Path, **environment: str) -> list[str]:
    """The passwords and origins that a command sets: the client's password, the server's, the origins."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**usual, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")[:3]


def test_a_server_of_our_own_has_a_password_that_nobody_can_guess(tmp_path: Path) -> None:
    client, server, origins = prepared(tmp_path)
    again, *_ = prepared(tmp_path)
    assert client == server != again
    assert len(client) > 40
    assert "*" not in origins


@pytest.mark.parametrize("by", ["environment", "profile"])
def test_a_server_that_the_user_names_keeps_its_own(tmp_path: Path, by: str) -> None:
    (tmp_path / "profiles.toml").write_text(PROFILES if by == "profile" else "")
    named = {"PREFECT_API_URL": "http://127.0.0.1:4200/api"} if by == "environment" else {}
    assert prepared(tmp_path, **named) == ["", "", ""]


def test_a_password_of_the_users_choice_is_the_servers_too(tmp_path: Path) -> None:
    client, server, _ = prepared(tmp_path, PREFECT_API_AUTH_STRING="me:mine")
    assert (client, server) == ("me:mine", "me:mine")


def test_a_server_that_is_named_as_none_is_none_whatever_the_profile_says(tmp_path: Path) -> None:
    (tmp_path / "profiles.toml").write_text(PROFILES)
    client, server, origins = prepared(tmp_path, PREFECT_API_URL="")  # Prefect would start one of its own
    assert client == server != ""
    assert "*" not in origins


@pytest.mark.parametrize("by", ["environment", "profile"])
def test_a_servers_password_of_the_users_choice_is_the_clients_too(tmp_path: Path, by: str) -> None:
    password = 'PREFECT_SERVER_API_AUTH_STRING = "me:mine"'
    (tmp_path / "profiles.toml").write_text(f'active = "mine"\n[profiles.mine]\n{password if by == "profile" else ""}')
    named = {"PREFECT_SERVER_API_AUTH_STRING": "me:mine"} if by == "environment" else {}
    client, server, _ = prepared(tmp_path, **named)
    assert (client, server) == ("me:mine", "me:mine")
