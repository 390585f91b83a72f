"""Lakes that commands read: made once, and copied for each file of tests, which may write to its own."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.hostile import write
from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.people import FOUND, judged

RESULTS = 40


@dataclass(frozen=True)
class Imported:
    """A folder in whose ./lake results were imported, and what the import printed."""

    folder: Path
    said: dict[str, Any]

    @property
    def run(self) -> str:
        """The run's id."""
        return str(self.said["run_id"])

    def query(self, sql: str, *options: str) -> list[dict[str, Any]]:
        """The rows that `evalake sql` prints."""
        done = evalake_here("sql", sql, "--format", "json", *options, folder=self.folder)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)  # type: ignore[no-any-return]


def import_lines(folder: Path, file: str, suite: str, lines: list[str]) -> Imported:
    """Write recorded results into a file of the folder, and import it."""
    (folder / file).write_text("\n".join(lines) + "\n")
    done = evalake_here("import", file, "--suite", suite, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return Imported(folder, json.loads(done.stdout))


Copy = Callable[[Imported], Imported]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    def copied(original: Imported) -> Imported:
        folder = tmp_path_factory.mktemp("copied") / "folder"
        shutil.copytree(original.folder, folder)
        return Imported(folder, original.said)

    return copied


@pytest.fixture(scope="package")
def recorded_results(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    lines = [recorded(n, action="BLOCK" if n % 4 == 0 else "ALLOW") for n in range(RESULTS)]
    return import_lines(tmp_path_factory.mktemp("imported"), "results.jsonl", "command_guard", lines)


@pytest.fixture(scope="module")
def imported(recorded_results: Imported, copy: Copy) -> Imported:
    """Forty commands, half of them malicious, of which one model blocked every second and nothing else."""
    return copy(recorded_results)


@pytest.fixture(scope="package")
def recorded_audits(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    lines = [judged(n, model, n < found) for model, found in FOUND.items() for n in range(10)]
    return import_lines(tmp_path_factory.mktemp("people"), "audits.jsonl", "solidity_audit", lines)


@pytest.fixture(scope="module")
def audited(recorded_audits: Imported, copy: Copy) -> Imported:
    """Three models on ten audits: the first finds nine targets, the second six, the third two."""
    return copy(recorded_audits)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose files name a logging configuration that runs a command, in every way that Prefect knows."""
    return write(tmp_path)
