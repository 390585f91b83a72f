"""Private names of libraries stand in files of their own, and this fails where they may have moved."""

import ast
from importlib.metadata import version
from pathlib import Path

import pytest

from cli.startup import sitecustomize
from providers import litellm_internals
from tasks.runtime import prefect_internals

ROOT = Path(__file__).parents[1]
ROOMS = ("cli", "contracts", "core", "evalake", "flows", "metrics", "providers", "reports", "service", "storage")
MODULES = [file for room in (*ROOMS, "suites", "tasks") for file in sorted((ROOT / room).rglob("*.py"))]


# Before Prefect is imported there is no module of ours: so it has two files, one for each.
AT_HOME = {
    "litellm": {"providers/litellm_internals.py": litellm_internals.SEEN_IN},
    "prefect": {
        "cli/startup/sitecustomize.py": sitecustomize.SEEN_IN,
        "tasks/runtime/prefect_internals.py": prefect_internals.SEEN_IN,
    },
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


def test_prefects_readers_of_the_working_directory_are_where_they_were() -> None:
    from prefect.settings import sources

    sitecustomize.replace(sources)  # raises where one of them is gone
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
