"""The docs site builds without a warning, and its reference has every command, table, column and public name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import evalake
from evalake.cli.help import Command
from evalake.cli.main import app
from evalake.storage.sql.catalogue import catalogue
from evalake.suites.registry import all_contracts

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = (sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", ROOT / "docs", folder)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def headings(page: Path) -> set[str]:
    """The second-level headings of a page."""
    return set(re.findall(r"<h2>(.*?)<a", page.read_text(encoding="utf-8")))


def test_every_command_is_described(site: Path) -> None:
    names: set[str] = set()

    def walk(command: object, name: str) -> None:
        if isinstance(command, Command):
            names.add(name)
        else:
            for word, part in command.commands.items():  # type: ignore[attr-defined]
                walk(part, f"{name} {word}")

    walk(typer.main.get_command(app), "evalake")
    assert len(names) > 25
    assert headings(site / "reference" / "commands.html") == names


def test_every_table_view_and_column_is_described(site: Path) -> None:
    page = (site / "reference" / "tables.html").read_text(encoding="utf-8")
    entries = catalogue(all_contracts())
    assert headings(site / "reference" / "tables.html") == {entry.name for entry in entries}
    shown = re.findall(r'<td><p><code class="docutils literal notranslate"><span class="pre">(\w+)<', page)
    assert shown == [column.column for entry in entries for column in entry.columns]


def test_every_public_name_is_described(site: Path) -> None:
    page = (site / "python.html").read_text(encoding="utf-8")
    assert all(f'id="evalake.{name}"' in page for name in evalake.__all__)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', page.read_text(encoding="utf-8"))
        assert not [address for address in loaded if address.startswith(("http", "//"))], page.name
