"""Read a GTFOBins checkout, at any commit since 2020: one file of YAML front matter per binary in `_gtfobins/`.

Both of its schemas are read: the one until 2025 (`7z.md`; functions such as `file-upload` and `sudo`) and the one since
(`7z`; functions such as `upload`, each entry with `contexts`). What becomes a command:

* one entry of one of the eight functions, or of their older names: its own `code`, or that of its `unprivileged`
  context where this has one. Entries that only work with privileges count: what they do is no better for that.
* not the variants that other contexts (sudo, suid, capabilities) give as `code` of their own, nor, in the older schema,
  the functions of these names: they repeat the same technique.
* not an `alias`: the commands are those of the binary it names.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from suites.command_guard.harvest import MISSING_COMMAND, Harvest, Material
from suites.command_guard.placeholders import make_concrete
from suites.sources import NOT_UTF8, as_payload

FOLDER = "_gtfobins"
CATEGORIES = ("shell", "command", "reverse-shell", "bind-shell", "file-read", "file-write", "upload", "download")
OLDER_NAMES = {
    "non-interactive-reverse-shell": "reverse-shell",
    "non-interactive-bind-shell": "bind-shell",
    "file-upload": "upload",
    "file-download": "download",
}
LONGEST_FILE = 1024 * 1024  # bytes; the largest real one has a hundredth of it

ALIAS = "alias of another binary"
OTHER_FUNCTION = "function outside the eight"
OTHER_CONTEXT = "variant for another context"
NOT_A_BINARY = "hidden file or folder"
FILE_TOO_LONG = "file too long"
NO_FRONT_MATTER = "no YAML front matter"
NOT_YAML = "invalid YAML"
UNEXPECTED = "unexpected structure"

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)(?:^(?:---|\.\.\.)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)


def read_gtfobins(folder: Path, harvest: Harvest) -> None:
    """Take every command below `folder`/_gtfobins, in the order of file names, functions and entries."""
    for file in sorted((folder / FOLDER).iterdir(), key=lambda each: each.name):
        where = f"{FOLDER}/{as_payload(file.name)}"
        if file.name.startswith(".") or not file.is_file():
            harvest.leave(where, NOT_A_BINARY)
        elif file.stat().st_size > LONGEST_FILE:
            harvest.leave(where, FILE_TOO_LONG, f"{file.stat().st_size} bytes")
        else:
            _read_file(where, as_payload(file.name.removesuffix(".md")), file.read_bytes(), harvest)


def _read_file(where: str, binary: str, content: bytes, harvest: Harvest) -> None:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        harvest.leave(where, NOT_UTF8, content.decode("utf-8", "surrogateescape"))
        return
    front_matter = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    if front_matter is None:
        harvest.leave(where, NO_FRONT_MATTER, text)
        return
    try:
        document = yaml.load(front_matter[1], Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        harvest.leave(where, NOT_YAML, text)
        return
    if not isinstance(document, dict) or not ("alias" in document or isinstance(document.get("functions"), dict)):
        harvest.leave(where, UNEXPECTED, text)
        return
    if "alias" in document:
        harvest.leave(where, ALIAS)
    functions = document.get("functions")
    if isinstance(functions, dict):
        for name, entries in functions.items():
            _read_function(f"{where}#{as_payload(str(name))}", binary, str(name), entries, text, harvest)


def _read_function(where: str, binary: str, name: str, entries: Any, text: str, harvest: Harvest) -> None:
    category = OLDER_NAMES.get(name, name)
    if category not in CATEGORIES:
        for _ in entries if isinstance(entries, list) else [entries]:
            harvest.leave(where, OTHER_FUNCTION)
    elif not isinstance(entries, list):
        harvest.leave(where, UNEXPECTED, text)
    else:
        for number, entry in enumerate(entries):
            _read_entry(f"{where}[{number}]", binary, category, entry, text, harvest)


def _read_entry(where: str, binary: str, category: str, entry: Any, text: str, harvest: Harvest) -> None:
    if not isinstance(entry, dict):
        harvest.leave(where, UNEXPECTED, text)
        return
    own = dict(_codes_of_contexts(entry.get("contexts")))
    code = own.pop("unprivileged", entry.get("code"))
    for _ in own:
        harvest.leave(where, OTHER_CONTEXT)
    if not isinstance(code, str) or not code.strip():
        harvest.leave(where, MISSING_COMMAND, text)
        return
    command = make_concrete(code.strip("\n").rstrip(), category)
    harvest.take(where, Material(command, "malicious", category, name=f"{binary}_{category}", raw=text))


def _codes_of_contexts(contexts: Any) -> Iterator[tuple[str, str]]:
    """The contexts that have code of their own. A context without any is null; so may be all of them."""
    for name, context in contexts.items() if isinstance(contexts, dict) else ():
        if isinstance(context, dict) and isinstance(context.get("code"), str):
            yield str(name), context["code"]
