"""A folder full of other people's files: the command, run in it, takes no orders from them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT, evalake
from tests.servers.model_server import ModelServer

SET_UP_LOGGING = "from prefect.logging.configuration import setup_logging; setup_logging()"
SHADOWED = ("core", "litellm", "polars", "prefect", "service", "sitecustomize", "usercustomize", "uvicorn")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose files name a logging configuration that runs a command, in every way that Prefect knows."""
    (folder := tmp_path / "hostile").mkdir()

    def attack(name: str) -> str:
        # A factory of Python's logging configuration may be any callable
        file = folder / f"{name}.yml"
        file.write_text(
            f"version: 1\ndisable_existing_loggers: false\nloggers: {{evil: {{handlers: [evil]}}}}\n"
            f'handlers: {{evil: {{"()": os.system, command: "touch {folder / name}.marker"}}}}\n'
        )
        return str(file)

    (folder / "profiles.toml").write_text(
        f'active = "evil"\n[profiles.evil]\nPREFECT_LOGGING_SETTINGS_PATH = "{attack("profile")}"\n'
    )
    (folder / ".env").write_text(
        f"PREFECT_LOGGING_SETTINGS_PATH={attack('dotenv')}\nPREFECT_PROFILES_PATH={folder / 'profiles.toml'}\n"
    )
    (folder / "prefect.toml").write_text(f'[logging]\nconfig_path = "{attack("prefect")}"\n')
    (folder / "pyproject.toml").write_text(f'[tool.prefect.logging]\nconfig_path = "{attack("pyproject")}"\n')
    for module in SHADOWED:
        (folder / f"{module}.py").write_text(f"open({str(folder / module)!r} + '.marker', 'w')\n")
    return folder


def markers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.marker"))


def python(code: str, folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder.parent / "home")},
        check=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("file", "marker"), [(".env", "dotenv"), ("prefect.toml", "prefect"), ("pyproject.toml", "pyproject")]
)
def test_prefect_by_itself_runs_what_the_folder_says(hostile: Path, file: str, marker: str) -> None:
    """Holds that the attack of these tests is one."""
    for other in {".env", "prefect.toml", "pyproject.toml"} - {file}:
        (hostile / other).unlink()
    python(SET_UP_LOGGING, hostile)
    assert markers(hostile) == [f"{marker}.marker"]


def test_neither_the_command_nor_what_it_starts_runs_it(hostile: Path) -> None:
    child = f"subprocess.run([sys.executable, '-c', {SET_UP_LOGGING!r}], check=True)"
    python(
        f"import subprocess, sys; from cli.environment import prepare; prepare(); {SET_UP_LOGGING}; {child}", hostile
    )
    assert markers(hostile) == []


def test_prefects_own_command_runs_it_and_ours_around_it_does_not(hostile: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    place = {"PREFECT_HOME": str(hostile.parent / "home"), "PREFECT_API_URL": "http://127.0.0.1:9/api"}
    worker = ("worker", "start", "--pool", "evalake")  # ends at once, for there is no server

    def start(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=hostile, env={**environment, **place}, capture_output=True, text=True, timeout=500
        )

    binaries = Path(sys.executable).parent
    start(str(binaries / "evalake"), "prefect", *worker)
    assert markers(hostile) == []
    start(str(binaries / "prefect"), *worker)
    assert markers(hostile) != []


@pytest.mark.e2e
def test_a_run_in_such_a_folder(hostile: Path) -> None:
    """The real command, with a Prefect server of its own."""
    command = [str(Path(sys.executable).parent / "evalake"), "run", "command_guard", "--first", "1"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        command,
        cwd=hostile,
        env={**environment, "PREFECT_HOME": str(hostile.parent / "home")},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert markers(hostile) == []


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
