"""Reads the user's own prompts: files beside a configuration, which `[suites.NAME.prompts.MINE]` names."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalake.core.errors import ConfigurationError
from evalake.core.files import ABSENT, LINK_OUT, MEGABYTE, FileRefusedError, Files

PROMPTS = "prompts"
"""The key of a suite's further prompts, by name."""

TEMPLATES = "templates"
"""The key of a suite's set of templates: a shipped set, or a folder or file beside the configuration."""

LARGEST_FILE = MEGABYTE
SUFFIX = ".md"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def read_prompts(suite: str, section: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Replace the file names in a suite's prompts and templates by the texts of the files.

    Args:
        suite: The name of the suite, for errors.
        section: Its section of the configuration.
        folder: The configuration's folder; files outside are refused.

    Returns:
        The section, its prompts as name -> part -> text, and its templates, where they name a folder, as part -> text.

    Raises:
        ConfigurationError: A prompt is not a table of file names, a folder holds no templates, or a file is missing,
            empty, no text, or elsewhere.
    """
    files = Files(folder, LARGEST_FILE)
    named = section.get(TEMPLATES, "")
    if not isinstance(named, str):
        raise ConfigurationError(f"suites.{suite}.{TEMPLATES} must name a set of templates, or a folder of them")
    if named and (folder / named).is_dir():
        section = {**section, TEMPLATES: _folder(f"suites.{suite}.{TEMPLATES}", named, files)}
    elif named and (folder / named).is_file():
        section = {**section, TEMPLATES: _document(f"suites.{suite}.{TEMPLATES}", named, files)}
    if PROMPTS not in section:
        return section
    place = f"suites.{suite}.{PROMPTS}"
    given = section[PROMPTS]
    if not isinstance(given, Mapping):
        raise ConfigurationError(f'{place} must be a table of prompts, like [{place}.mine] with system = "mine.md"')
    return {**section, PROMPTS: {name: _read(f"{place}.{name}", name, parts, files) for name, parts in given.items()}}


def _read(place: str, name: str, parts: Any, files: Files) -> dict[str, str]:
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"{place!a} is not a prompt's name: use small letters, digits and _, at most 40")
    if not isinstance(parts, Mapping) or not parts or not all(isinstance(file, str) for file in parts.values()):
        raise ConfigurationError(f'{place} must name a file for each part of the prompt, like system = "{name}.md"')
    return {part: _text(f"{place}.{part}", file, files) for part, file in parts.items()}


def _folder(place: str, name: str, files: Files) -> dict[str, str]:
    """Read the texts of a folder, by file name without the ending."""
    paths = sorted((files.root / name).glob(f"*{SUFFIX}"))
    if not paths:
        raise ConfigurationError(f"{place} names the folder {_shown(name)}, in which no file ends in {SUFFIX}")
    return {path.stem: _text(f"{place}.{path.stem}", str(Path(name) / path.name), files) for path in paths}


_PART_OF_NAME = {
    "missing_tools": "missing_tools",
    "reminder": "reminder",
    "system": "system",
    "schema": "output_schema",
    "score": "request",
}  # the first word that a name holds
_BLOCK = re.compile(r"^#{1,6}[^\n]*?`?([A-Za-z_]{3,60})`?[ \t]*\n\s*```[a-z]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def _document(place: str, name: str, files: Files) -> dict[str, str]:
    """Read the prompts of a document: fenced blocks under headings that name them, or constants of a Python file.

    Nothing of the file is executed.
    """
    content = _text(place, name, files)
    named = _constants(content) if name.endswith(".py") else dict(_BLOCK.findall(content))
    parts: dict[str, str] = {}
    for of, text in named.items():
        part = next((part for word, part in _PART_OF_NAME.items() if word in of.lower()), None)
        if part is not None:
            parts.setdefault(part, text.strip())
    if "request" not in parts:
        raise ConfigurationError(f"{place} names {_shown(name)}, in which no prompt is called like judge_prompt_score")
    return parts


def _constants(content: str) -> dict[str, str]:
    try:
        body = ast.parse(content).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return {
        target.id: each.value.value
        for each in body
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str)
        for target in each.targets
        if isinstance(target, ast.Name)
    }


def _text(place: str, name: str, files: Files) -> str:
    try:
        text = files.read(files.root / name).decode("utf-8")
    except FileRefusedError as error:
        raise ConfigurationError(f"{place} names {_shown(name)}, {_WHY.get(error.reason, error.reason)}") from error
    except ValueError as error:  # no UTF-8, or a NUL in the name
        raise ConfigurationError(f"{place} names {_shown(name)}, which is not UTF-8") from error
    if not text.strip() or "\x00" in text:
        raise ConfigurationError(f"{place} names {_shown(name)}, which {'holds a NUL' if text.strip() else 'is empty'}")
    return text.strip()


def _shown(name: str) -> str:
    return ascii(name[:200])[1:-1]


_WHY: Mapping[str, str] = {
    ABSENT: "but there is no such file beside the configuration",
    LINK_OUT: "which lies outside the configuration's folder: put it there",
}
