"""The locks: whole, hashed, without addresses, of one mind; and what the runtime lock installs is small enough."""

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
RUNTIME, DEV = "requirements.lock", "requirements-dev.lock"
LARGEST = 1.3e9  # bytes installed, without byte code
TEST_TOOLS = {"pytest", "hypothesis", "moto", "playwright", "ruff", "mypy", "schemathesis", "scikit-learn", "uv"}

Pins = dict[str, tuple[Requirement, list[str]]]


def pins(lock: str) -> Pins:
    """Each package of a lock: what is required, and the hashes that its files may have."""
    read: Pins = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip()):
        requirement = Requirement(entry.split(" \\")[0])
        read[requirement.name] = requirement, re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
    return read


def wanted_here(lock: str) -> list[Requirement]:
    """What of a lock belongs on this machine."""
    return [one for one, _ in pins(lock).values() if one.marker is None or one.marker.evaluate()]


@pytest.mark.parametrize("lock", [RUNTIME, DEV])
def test_everything_is_pinned_with_hashes_and_without_addresses(lock: str) -> None:
    for requirement, hashes in pins(lock).values():
        assert str(requirement.specifier).startswith("=="), requirement
        assert hashes, requirement
    assert "://" not in (ROOT / lock).read_text()
    assert "--index" not in (ROOT / lock).read_text()


def test_what_runs_is_the_same_where_it_is_tested() -> None:
    runtime, dev = pins(RUNTIME), pins(DEV)
    for name, (requirement, hashes) in runtime.items():
        assert (dev[name][0].specifier, dev[name][1]) == (requirement.specifier, hashes)
    assert dev.keys() >= TEST_TOOLS
    assert not TEST_TOOLS & runtime.keys()


def test_the_runtime_lock_is_whole_and_builds_evalake() -> None:
    """It is installed without a resolver, so everything that its packages need has to be in it."""
    locked = pins(RUNTIME).keys()
    assert locked >= {"hatchling", "editables"}
    for requirement in wanted_here(RUNTIME):
        for line in distribution(requirement.name).requires or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert re.sub("[-_.]+", "-", needed.name).lower() in locked, f"{requirement.name} needs {needed}"


def test_the_runtime_lock_installs_few_bytes() -> None:
    taken = 0
    for requirement in wanted_here(RUNTIME):
        installed = distribution(requirement.name)
        assert installed.version in requirement.specifier, f"{requirement} is not what is installed: make test"
        files = (Path(str(installed.locate_file(file))) for file in installed.files or [])
        taken += sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())
    assert 0.5e9 < taken <= LARGEST
