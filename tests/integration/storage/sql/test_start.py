"""The process of queries: what it may, and when it ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.storage.lake import Lake
from evalake.storage.sql.query import open_query
from evalake.storage.sql.start import _environment, confine, landlock_version, start

# Confinement: a process reads what it was let, lists what it was let, and neither writes nor runs anything else.

CONFINED = """
import json, os, sys
from evalake.storage.sql.start import confine

def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "done"

folder = sys.argv[1]
held = confine([folder + "/readable", folder + "/absent"], [folder + "/listable"])
print(json.dumps({
    "held": held,
    "read": attempt(lambda: open(folder + "/readable/file").read()),
    "write": attempt(lambda: open(folder + "/readable/new", "w")),
    "list": attempt(lambda: os.listdir(folder + "/listable")),
    "read what may be listed": attempt(lambda: open(folder + "/listable/file").read()),
    "list what is beside": attempt(lambda: os.listdir(folder)),
}))
"""


@pytest.mark.usefixtures("landlock")
def test_a_process_is_held_to_what_it_was_let(tmp_path: Path) -> None:
    for name in ("readable", "listable"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    done = subprocess.run([sys.executable, "-c", CONFINED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        "held": True,
        "read": "done",
        "write": "PermissionError",
        "list": "done",
        "read what may be listed": "PermissionError",
        "list what is beside": "PermissionError",
    }


def test_where_the_kernel_has_none_nothing_is_confined_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert landlock_version() == 0
    assert confine(["/"]) is False


# The process of a query, started before what it is asked is known.


def test_it_answers_what_it_is_asked_later(tmp_path: Path) -> None:
    with (
        start(str(tmp_path)) as process,
        open_query(Lake(str(tmp_path)), (), "select 1 as n", process=process) as result,
    ):
        assert result.frame().to_dicts() == [{"n": 1}]


def test_it_ends_where_nothing_is_asked() -> None:
    with pytest.raises(UsageError), start("lake") as started:
        raise UsageError("the command was wrong")
    assert started.process.returncode is not None


def test_it_is_started_before_anything_heavy_is_imported() -> None:
    heavy = "[m for m in ('polars', 'pyarrow', 'deltalake', 'pydantic', 'numpy') if m in sys.modules]"
    code = f"import sys; import evalake.storage.sql.start; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


KEYS_OF_MODELS = (
    "ANTHROPIC_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_AI_API_KEY",
    "AZURE_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "DATABASE_URL",
    "GOOGLE_API_KEY",
    "OPENAI_API_KEY",
    "PREFECT_API_KEY",
)


@pytest.mark.parametrize("lake", ["s3://bucket/lake", "./lake"])
def test_the_process_gets_no_key_of_a_provider(monkeypatch: pytest.MonkeyPatch, lake: str) -> None:
    for name in KEYS_OF_MODELS:
        monkeypatch.setenv(name, "hunter2")
    assert "hunter2" not in _environment(lake).values()


def test_the_process_gets_the_credentials_of_a_lake_that_asks_for_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the lake")
    assert _environment("s3://bucket/lake")["AWS_SECRET_ACCESS_KEY"] == "of the lake"
    assert "AWS_SECRET_ACCESS_KEY" not in _environment("file:///data/lake")
