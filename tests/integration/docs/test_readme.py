"""README.md is short, its links lead somewhere, and the commands that it and the pages name exist."""

import re
from pathlib import Path

import pytest
import typer

from evalake.cli.main import app

ROOT = Path(__file__).resolve().parents[3]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]


def test_it_has_at_most_900_words() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 900


def test_pictures_are_small() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\((.+?)\)", README.read_text(encoding="utf-8"))
    assert len(pictures) == 2
    assert all((ROOT / picture).stat().st_size <= 150_000 for picture in pictures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    generated = {"reference/commands.md", "reference/tables.md"}
    assert [link for link in links if link not in generated and not (page.parent / link).exists()] == []


@pytest.fixture(scope="module")
def commands() -> set[str]:
    return set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path, commands: set[str]) -> None:
    text = page.read_text(encoding="utf-8")
    written = re.findall(
        r"^    (?:\$ )?evalake (?!shows)([a-z][a-z-]*)\b|`evalake ([a-z][a-z-]*)\b", text, flags=re.MULTILINE
    )
    assert {first or second for first, second in written} <= commands
