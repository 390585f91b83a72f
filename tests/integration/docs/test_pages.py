"""Pages of documentation: what they promise, link, name and run."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

import evalake
from evalake.cli.help import Command
from evalake.cli.main import app
from evalake.core.configuration import Configuration
from evalake.storage.sql.catalogue import catalogue
from evalake.suites.registry import all_contracts
from tests.integration.cli.command import ROOT, WIDTH, evalake_here
from tests.servers.model_server import ModelServer

# README.md is short, its links lead somewhere, and the commands that it and the pages name exist.

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
    named = re.compile(r"^    (?:\$ )?evalake (?!shows)([a-z][a-z-]*)\b|`evalake ([a-z][a-z-]*)\b", re.MULTILINE)
    written = named.findall(page.read_text(encoding="utf-8"))
    assert {first or second for first, second in written} <= commands


def test_settings_that_a_page_shows_are_settings() -> None:
    for page in set(PAGES) - {README, ROOT / "docs" / "first-suite.md"}:  # which show suites
        for shown in re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            assert Configuration.model_validate(tomllib.loads(shown)), page


# The docs site builds without a warning, and its reference has every command, table, column and public name.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = (sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", ROOT / "docs", folder)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def headings(page: Path) -> set[str]:
    """The second-level headings of a page."""
    return set(re.findall(r"<h2>(.*?)<a", page.read_text(encoding="utf-8")))


def names_of(command: Any, name: str) -> set[str]:
    """The command's name, or those of its parts."""
    if isinstance(command, Command):
        return {name}
    return {each for word, part in command.commands.items() for each in names_of(part, f"{name} {word}")}


def test_every_command_is_described(site: Path) -> None:
    names = names_of(typer.main.get_command(app), "evalake")
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


# Every promise of docs/security.md names tests that there are.

PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?!promise |who |-)(.+) \|$", re.MULTILINE)


def test_each_test_that_is_named_exists() -> None:
    assert [file for file in re.findall(r"`(tests/[\w/]+\.py)`", PAGE) if not (ROOT / file).is_file()] == []


def test_every_promise_in_a_table_names_its_test() -> None:
    promises = [row for row in ROW.findall(PAGE) if row.count(" | ") == 1]
    assert len(promises) > 20
    assert [row for row in promises if "tests/" not in row.rpartition(" | ")[2]] == []


# docs/first-suite.md is true: its files are written and its commands run in order, up to the gate in CI.

FIRST_SUITE_PAGE = (ROOT / "docs" / "first-suite.md").read_text(encoding="utf-8")
STEP = re.compile(
    r"^`(?P<file>[\w./-]+)`:\n\n```\w+\n(?P<text>.*?)^```|^    (?P<command>(?:evalake|cd|mkdir|sh) [^\n]*)$",
    re.M | re.S,
)
RUN = re.compile(r"\bRUN\b")
MODELS = """
[models."openai/gpt-4o-mini"]
api_base = "{0}"
[models."openai/gpt-4o"]
api_base = "{0}"
"""


def test_every_step_of_the_page_works(tmp_path: Path, prefect_api: str, model_server: ModelServer) -> None:
    model_server.rule(model="gpt-4o-mini", reply="Thank you! Your parcel is on its way.")
    for city, letter in (("France", "A"), ("Italy", "B"), ("Japan", "C")):
        model_server.rule(model="gpt-4o-mini", contains=city, reply=f"The answer is {letter}.")
    model_server.rule(model="gpt-4o", reply='```json\n{"score": 5, "reason": "kind",}\n```')
    shims = tmp_path / "bin"
    shims.mkdir()
    (shims / "evalake").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evalake.cli "$@"\n')
    (shims / "evalake").chmod(0o755)
    environment = {
        **WIDTH,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PREFECT_API_URL": prefect_api,
        "OPENAI_API_KEY": "sk-of-a-test",
        "PYTHONPATH": str(ROOT),
        "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}",
    }
    folder, run, commands = tmp_path, "", 0
    for step in STEP.finditer(FIRST_SUITE_PAGE):
        if step["file"]:
            (folder / step["file"]).write_text(step["text"], encoding="utf-8")
            continue
        commands += 1
        program, *words = shlex.split(RUN.sub(run, step["command"]), comments=True)
        code = int(found[1]) if (found := re.search(r"# exits with (\d)", step["command"])) else 0
        if program == "cd":
            folder /= words[0]
        elif program == "evalake":
            done = evalake_here(*words, folder=folder, **environment)
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            if found := re.search(r"^run (\w+), completed", done.stdout, re.MULTILINE):
                run = found[1]
        else:
            if program == "mkdir":  # the real models are the server's, before the folder is trusted again
                settings = folder / "evalake.toml"
                asked = MODELS.format(model_server.api_base)
                settings.write_text(settings.read_text().removesuffix(asked) + asked)
            done = subprocess.run(
                [program, *words], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
            )
            assert done.returncode == code, (words, done.stdout, done.stderr)
    page = re.sub(r"^```.*?^```", "", FIRST_SUITE_PAGE, flags=re.MULTILINE | re.DOTALL)
    assert commands == len(re.findall(r"^    \S", page, re.MULTILINE))
    assert json.loads((folder / "run.json").read_text())["state"] == "completed"
    assert "accuracy" in (folder / "gate.xml").read_text()


def test_the_suites_are_as_short_as_their_headings_say() -> None:
    for lines, text in re.findall(r"in (\d+) lines\n.*?```toml\n(.*?)```", FIRST_SUITE_PAGE, re.DOTALL):
        assert len(text.splitlines()) == int(lines)


# docs/notebook.ipynb runs from its first cell to its last, in a fresh folder.


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, prefect_api: str) -> None:
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "cells.py").write_text(_as_program(code), encoding="utf-8")
    places = {"PYTHONPATH": str(ROOT), "PREFECT_HOME": str(tmp_path / "prefect"), "PREFECT_API_URL": prefect_api}
    command, environment = (sys.executable, "cells.py"), {**os.environ, **places}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    assert len(shown) == len(code)
    assert "balanced_accuracy" in shown[1]  # a run is shown by its headline
    assert all("<table" in html for html in shown[1:])


def _as_program(code: list[str]) -> str:
    """Return a program that runs cells as a notebook does, and prints what each of them shows as HTML."""
    return f"""
import ast, json
shown, names = [], {{}}
for cell in {code!r}:
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    shown.append("" if value is None else value._repr_html_())
print(json.dumps(shown))
"""
