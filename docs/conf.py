"""How Sphinx builds the site of these pages: `make docs`. Warnings are errors, and nothing asks the network."""

import inspect
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

import reference  # noqa: E402 - the module beside this file

project = "evalake"
version = release = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["notebook.ipynb"]
suppress_warnings = ["misc.highlighting_failure"]  # drawings in mermaid are shown as text

html_theme = "furo"
html_title = f"evalake {version}"
html_copy_source = False
highlight_language = "none"  # indented lines are commands and what they print

smartquotes = False  # options begin with two hyphens

myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_use_ivar = True

FIELD = re.compile(r"((?:^    #.*\n)*)^    (\w+): .*?(?:  # (.+))?$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+)(#[^)]*)?\)")


def setup(app: Any) -> None:
    """Generate the reference before pages are read, and adapt docstrings and links to the site."""
    app.connect("builder-inited", lambda app: reference.write(DOCS / reference.FOLDER))
    app.connect("autodoc-process-signature", _shorten_types)
    app.connect("autodoc-process-docstring", _describe_fields)
    app.connect("autodoc-process-docstring", _escape_marks)
    app.connect("source-read", _resolve_links)


def _shorten_types(app: Any, what: str, name: str, value: Any, options: Any, *parts: str | None) -> tuple[Any, ...]:
    """Name types in the arguments and the result without their modules; of checked fields list the names alone."""
    if fields := getattr(value, "__pydantic_fields__", {}):
        return f"({', '.join(fields)})", None
    return tuple(part and re.sub(r"~(?:\w+\.)+", "", part) for part in parts)


def _describe_fields(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """List the fields of a class: a row's by their descriptions, others by the comments behind or above them."""
    if what != "class":
        return
    if fields := getattr(value, "__pydantic_fields__", {}):
        described = {name: field.description or "" for name, field in fields.items()}
    else:
        found = FIELD.findall(inspect.getsource(value))
        described = {field: behind or " ".join(re.findall(r"# ?(.*)", above)) for above, field, behind in found}
    lines += [f":ivar {field}: {' '.join(words.split())}" for field, words in described.items() if words]
    lines.append("")


def _escape_marks(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Show words in backquotes as code, and every other mark of reStructuredText as it stands."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((":", "..")):  # fields, which napoleon has made
            escaped = re.sub(r"[*|]|(?<=\w)_(?=\W|$)", r"\\\g<0>", line)
            lines[number] = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", escaped)


def _resolve_links(app: Any, page: str, source: list[str]) -> None:
    """Lead links to pages of the site, and show the text alone of links to other files of the repository."""

    def resolved(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        folder = (DOCS / page).parent
        start = DOCS.parent if page in reference.ROOT_PAGES else folder
        file = (start / target).resolve()
        if file == DOCS or not file.is_relative_to(DOCS):
            root_page = reference.root_page(file.name) if file.parent == DOCS.parent else None
            if root_page is None:
                return text
            file = DOCS / f"{root_page}.md"
        return f"[{text}]({os.path.relpath(file, folder)}{anchor or ''})"

    source[0] = LINK.sub(resolved, source[0])
