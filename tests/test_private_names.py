"""Private names of Prefect and LiteLLM stand in one file each, and this fails where they may have moved."""

import ast
from importlib.metadata import version
from pathlib import Path

import pytest

from cli.startup import sitecustomize
from providers import litellm_internals

ROOT = Path(__file__).parents[1]
ROOMS = ("cli", "contracts", "core", "evalake", "flows", "metrics", "providers", "reports", "service", "storage")
MODULES = [file for room in (*ROOMS, "suites", "tasks") for file in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize(
    ("library", "at_home", "seen_in"),
    [
        ("prefect", "cli/startup/sitecustomize.py", sitecustomize.SEEN_IN),
        ("litellm", "providers/litellm_internals.py", litellm_internals.SEEN_IN),
    ],
)
def test_private_names_stand_in_one_file_that_knows_the_version(library: str, at_home: str, seen_in: str) -> None:
    assert version(library).startswith(f"{seen_in}."), f"look through {at_home} again"
    elsewhere = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in MODULES
        if file != ROOT / at_home
        for name in imported(file)
        if name.startswith(f"{library}.") and any(part.startswith("_") for part in name.split("."))
    }
    assert not elsewhere


def test_prefects_readers_of_the_working_directory_are_where_they_were() -> None:
    from prefect.settings import sources

    sitecustomize.close(sources)  # raises where one of them is gone
    assert vars(sources)["dotenv"].dotenv_values(".env") == {}


def imported(file: Path) -> list[str]:
    """The names that a module imports, with the modules that they are of."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{each.name}" for each in node.names]
    return names
