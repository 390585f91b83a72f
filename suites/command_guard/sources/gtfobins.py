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

from core.files import FileRefusedError, Files
from suites.base.sources import NOT_READ, NOT_UTF8, as_payload
from suites.command_guard.sources.builder import MISSING_COMMAND, CommandDatasetBuilder, Material
from suites.command_guard.sources.placeholders import make_concrete

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
NO_FRONT_MATTER = "no YAML front matter"
NOT_YAML = "invalid YAML"
UNEXPECTED = "unexpected structure"

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)(?:^(?:---|\.\.\.)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)


def read_gtfobins(folder: Path, builder: CommandDatasetBuilder) -> None:
    """Read every command below `folder`/_gtfobins, in the order of file names, functions and entries."""
    files = Files(folder, LONGEST_FILE)
    for file in sorted((folder / FOLDER).iterdir(), key=lambda each: each.name):
        where = f"{FOLDER}/{as_payload(file.name)}"
        if file.name.startswith(".") or (file.is_dir() and not file.is_symlink()):
            builder.skip(where, NOT_A_BINARY)
            continue
        try:
            content = files.read(file)
        except FileRefusedError as refused:
            builder.skip(where, refused.reason, NOT_READ)
            continue
        _read_file(where, as_payload(file.name.removesuffix(".md")), content, builder)


def _read_file(where: str, binary: str, content: bytes, builder: CommandDatasetBuilder) -> None:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        builder.skip(where, NOT_UTF8, content.decode("utf-8", "surrogateescape"))
        return
    front_matter = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    if front_matter is None:
        builder.skip(where, NO_FRONT_MATTER, text)
        return
    try:
        document = yaml.load(front_matter[1], Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
        builder.skip(where, NOT_YAML, text)
        return
    if not isinstance(document, dict) or not ("alias" in document or isinstance(document.get("functions"), dict)):
        builder.skip(where, UNEXPECTED, text)
        return
    if "alias" in document:
        builder.skip(where, ALIAS)
    functions = document.get("functions")
    if isinstance(functions, dict):
        for name, entries in functions.items():
            _read_function(f"{where}#{as_payload(str(name))}", binary, str(name), entries, text, builder)


def _read_function(where: str, binary: str, name: str, entries: Any, text: str, builder: CommandDatasetBuilder) -> None:
    category = OLDER_NAMES.get(name, name)
    if category not in CATEGORIES:
        for _ in entries if isinstance(entries, list) else [entries]:
            builder.skip(where, OTHER_FUNCTION)
    elif not isinstance(entries, list):
        builder.skip(where, UNEXPECTED, text)
    else:
        for number, entry in enumerate(entries):
            _read_entry(f"{where}[{number}]", binary, category, entry, text, builder)


def _read_entry(where: str, binary: str, category: str, entry: Any, text: str, builder: CommandDatasetBuilder) -> None:
    if not isinstance(entry, dict):
        builder.skip(where, UNEXPECTED, text)
        return
    own = dict(_codes_of_contexts(entry.get("contexts")))
    code = own.pop("unprivileged", entry.get("code"))
    for _ in own:
        builder.skip(where, OTHER_CONTEXT)
    if not isinstance(code, str) or not code.strip():
        builder.skip(where, MISSING_COMMAND, text)
        return
    command = make_concrete(code.strip("\n").rstrip(), category)
    name = f"{binary}_{category}"
    builder.add_material(where, Material(command, "malicious", category, cluster=binary, name=name, raw=text))


def _codes_of_contexts(contexts: Any) -> Iterator[tuple[str, str]]:
    """Yield the contexts that have code of their own. A context without any is null; so may be all of them."""
    for name, context in contexts.items() if isinstance(contexts, dict) else ():
        if isinstance(context, dict) and isinstance(context.get("code"), str):
            yield str(name), context["code"]
