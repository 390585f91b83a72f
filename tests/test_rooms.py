"""The rooms: only suites/ knows which suites there are, so that another one needs no change outside its own folder."""

from pathlib import Path

import pytest

from suites.registry import suite_names

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "core",
    "contracts",
    "storage",
    "providers",
    "metrics",
    "reports",
    "tasks",
    "flows",
    "service",
    "cli",
    "evalake",
)
OF_SCORING = (ROOT / "service" / "scoring", ROOT / "flows" / "score_session.py")


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_names_a_suite(room: str) -> None:
    files = [
        file
        for file in (ROOT / room).rglob("*.py")
        if not any(file.is_relative_to(exception) for exception in OF_SCORING)
    ]
    assert files
    naming = [
        f"{file.relative_to(ROOT)}: {name}" for file in files for name in suite_names() if name in file.read_text()
    ]
    assert naming == []


@pytest.mark.parametrize("room", [*ROOMS, "suites"])
def test_every_module_has_a_test_file_of_its_name(room: str) -> None:
    modules = [
        file.relative_to(ROOT)
        for file in (ROOT / room).rglob("*.py")
        if not file.name.startswith("__") and (file.parent / "__init__.py").exists()
    ]
    assert modules
    without = [str(file) for file in modules if not (ROOT / "tests" / file.with_name(f"test_{file.name}")).exists()]
    assert without == []
