"""The modules of the pages as one script, for pages that are opened as files: browsers load no modules from those."""

import re
from pathlib import Path

# The only forms of import and export in the modules of the pages; a test checks that there are no others.
_IMPORT = re.compile(r'^import \{([\w, ]+)\} from "(/js/[\w/]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)


def bundle(front: Path, entry: str) -> str:
    """Write a module with all that it imports as one script.

    Args:
        front: The folder of the pages.
        entry: The module that is run, such as `/js/main.js`.
    """
    modules: dict[str, str] = {}
    _collect(front, entry, modules)
    parts = (f"modules[{name!r}] = (() => {{\n{text}}})();\n" for name, text in modules.items())
    return "".join(['"use strict";\n(() => {\nconst modules = {};\n', *parts, "})();\n"])


def _collect(front: Path, name: str, modules: dict[str, str]) -> None:
    """Add a module as the body of a function that returns what it exports, after those that it imports."""
    text = (front / name.removeprefix("/")).read_text(encoding="utf-8")
    for _, imported in _IMPORT.findall(text):
        if imported not in modules:
            _collect(front, imported, modules)
    exported = ", ".join(each for _, each in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(r'const {\1} = modules["\2"];', text))
    modules[name] = f"{body}return {{{exported}}};\n"
