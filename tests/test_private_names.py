"""Private names of libraries stand in files of their own, and this fails where they may have moved."""

import ast
from importlib.metadata import version
from pathlib import Path

import pytest

from evalake.core import prefect_settings
from evalake.models import litellm_internals
from evalake.tasks.runtime import server

ROOT = Path(__file__).parents[1]
ROOMS = ("contracts", "evalake", "flows", "storage", "tasks")
MODULES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]


AT_HOME = {
    "litellm": {"evalake/models/litellm_internals.py": litellm_internals.SEEN_IN},
    "prefect": {"tasks/runtime/server.py": server.SEEN_IN},
    "pydantic-settings": {"evalake/core/prefect_settings.py": prefect_settings.SEEN_IN},
}
NOT_PROMISED = ("prefect.server.",)  # beside names that begin with an underscore


@pytest.mark.parametrize("library", AT_HOME)
def test_private_names_stand_in_files_that_know_the_version(library: str) -> None:
    for file, seen_in in AT_HOME[library].items():
        assert version(library).startswith(f"{seen_in}."), f"look through {file} again"
    elsewhere = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in MODULES
        if str(file.relative_to(ROOT)) not in AT_HOME[library]
        for name in imported(file)
        if name.startswith(f"{library}.") and is_private(name)
    }
    assert not elsewhere


def is_private(name: str) -> bool:
    return name.startswith(NOT_PROMISED) or any(part.startswith("_") for part in name.split("."))


def imported(file: Path) -> list[str]:
    """The names that a module imports, with the modules that they are of."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{each.name}" for each in node.names]
    return names
