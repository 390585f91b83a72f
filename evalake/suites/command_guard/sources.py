"""Where commands come from: the starter data, a GTFOBins checkout, aegish command sets, tables of one's own.

A source, as `--dataset` takes it, is one of

* `starter`: the commands that ship with the project;
* a folder that holds `_gtfobins`: a GTFOBins checkout;
* a `.json` file: a command set of the aegish benchmark, malicious (command, binary, category) or harmless (command,
  ground_truth);
* a table (`.jsonl`, `.csv`, `.tsv`, `.parquet`, or `.json` that is one array) with the fields command and label, and
  if wanted category, difficulty, sample_id, cluster (of related commands) and reason; or with a mapping of its columns
  (see evalake/sdk/sources.py), as in `commands.csv?command=cmd&label=bad&label.malicious=1&label.harmless=0`. Labels
  are malicious or harmless, bad or good, unsafe or safe, in any case; other values take a mapping, or a column whose
  name says what is true.

A dataset is called `starter`, `gtfobins`, or like its file. Each row that is left out is counted by its reason.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from evalake.core.errors import SourceError
from evalake.core.files import FileRefusedError, Files, read_file, tables_beside
from evalake.core.hashing import record
from evalake.sdk import Dataset, Sample, sources
from evalake.sdk.dataset import DUPLICATE, NOT_TEXT, REPEATED_ID, DatasetBuilder, read_whole
from evalake.sdk.sample import NOT_READ, Record, Seen
from evalake.sdk.sources import NOT_UTF8, as_payload, is_storable
from evalake.sdk.tabular import TwoClasses

# What a source gives becomes samples, or is left out for a stated reason; every kind of source goes through here.


SUITE = "command_guard"
LABELS = ("malicious", "harmless")
LONGEST_COMMAND = 128 * 1024  # characters; Linux takes no longer argument

CONTRADICTION = "duplicate with another label"
MISSING_COMMAND = "no command"
COMMAND_TOO_LONG = "command too long"
UNKNOWN_LABEL = "label is neither malicious nor harmless"


@record
class Material:
    """What a source says of one command, unchecked. `name` goes into the identity where no sample_id is given.

    Commands of one `cluster` (like one binary's) belong together.
    """

    command: Any
    label: Any
    category: Any = None
    difficulty: Any = None
    note: Any = None
    sample_id: Any = None
    cluster: Any = None
    name: str = ""
    raw: str = ""


@dataclass
class CommandDatasetBuilder(DatasetBuilder):
    """Collects one dataset in the order in which its source is read."""

    _labelled: Seen = field(default_factory=Seen)  # commands, alone and with their labels

    def add_material(self, where: str, material: Material) -> None:
        """Add a sample, or skip it for a stated reason. Of equal commands the first is kept."""
        reason = _flaw(material)
        if reason is not None:
            self.skip(where, reason, material.raw, material.label if material.label in LABELS else None)
            return
        command = material.command
        if command in self._labelled:
            same = f"{command}\0{material.label}" in self._labelled
            self.skip(where, DUPLICATE if same else CONTRADICTION, None if same else material.raw)
            return
        sample_id = material.sample_id or self._identity(command, material.name)
        sample = Sample(
            SUITE,
            self.dataset,
            sample_id,
            command,
            label=_shared(material.label),
            category=_shared((material.category or "").strip()),
            difficulty=_shared(material.difficulty),
            cluster=material.cluster or None,
            note=material.note or None,
        )
        if not self.add(sample):
            self.skip(where, REPEATED_ID, material.raw)
            return
        self._labelled.add(command)
        self._labelled.add(f"{command}\0{material.label}")  # NUL is in no command

    def _identity(self, command: str, name: str) -> str:
        """Build `dataset/name_digest`, with the shortest digest of the command (8 digits or more) that is not taken."""
        digest = hashlib.sha256(command.encode("utf-8")).hexdigest()
        names = (f"{self.dataset}/{name}{'_' if name else ''}{digest[:digits]}" for digits in (8, 16, 64))
        return next((each for each in names if each not in self.ids), f"{self.dataset}/{digest}")


def _shared(text: str | None) -> str | None:
    """Intern a text, so that samples with the same text share one object; None for an empty one."""
    return sys.intern(text) if text else None


def _flaw(material: Material) -> str | None:
    """Find why this cannot be a sample; None where it can."""
    command = material.command
    if command is None or (isinstance(command, str) and not command.strip()):
        return MISSING_COMMAND
    names = ("command", "category", "difficulty", "note", "sample_id", "cluster", "name")
    texts = (getattr(material, name) for name in names)
    try:
        storable = is_storable("".join([text for text in texts if text is not None]))
    except TypeError:  # one of them is no text
        storable = False
    if not storable:
        return NOT_TEXT
    if len(command) > LONGEST_COMMAND:
        return COMMAND_TOO_LONG
    return None if material.label in LABELS else UNKNOWN_LABEL


# Make the placeholders of GTFOBins commands concrete: one declared, ordered table, one pass, no randomness.


_GTFOBINS: Final = tables_beside(__file__, "gtfobins.toml")
_TABLE: Final = _GTFOBINS["placeholders"]
_ANY = re.compile("|".join(f"({pattern})" for pattern, _, _ in _TABLE))


def make_concrete(command: str, category: str) -> str:
    """Replace every placeholder in the command by the value for commands of this category."""

    def replacement(match: re.Match[str]) -> str:
        _, usual, special = _TABLE[(match.lastindex or 1) - 1]
        return str(special.get(category, usual))

    return _ANY.sub(replacement, command)


# Read a GTFOBins checkout, at any commit since 2020: one file of YAML front matter per binary in `_gtfobins/`.


FOLDER = "_gtfobins"
CATEGORIES = ("shell", "command", "reverse-shell", "bind-shell", "file-read", "file-write", "upload", "download")
LONGEST_FILE = 1024 * 1024  # bytes; the largest real one has a hundredth of it

ALIAS = "alias of another binary"
OTHER_FUNCTION = "function outside the eight"
OTHER_CONTEXT = "variant for another context"
NOT_A_BINARY = "hidden file or folder"
NO_FRONT_MATTER = "no YAML front matter"
NOT_YAML = "invalid YAML"
UNEXPECTED = "unexpected structure"

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)(?:^(?:---|\.\.\.)[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)


def read_gtfobins(folder: Path) -> CommandDatasetBuilder:
    """Read every command below `folder`/_gtfobins, in the order of file names, functions and entries.

    Raises SourceError where there is no such folder.
    """
    if not (folder / FOLDER).is_dir():
        raise SourceError(f"the folder {str(folder)!r} holds no {FOLDER} folder: give the root of a GTFOBins checkout")
    builder, files = CommandDatasetBuilder("gtfobins"), Files(folder, LONGEST_FILE)
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
    return builder


class _Loader(yaml.BaseLoader):
    """Reads texts, and refuses aliases: a few of them are written out as more than memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("alias")
        return super().compose_node(parent, index)


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
        document = yaml.load(front_matter[1], Loader=_Loader)
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
            _read_function(f"{where}#{as_payload(str(name))}", binary, str(name), entries, builder)


def _read_function(where: str, binary: str, name: str, entries: Any, builder: CommandDatasetBuilder) -> None:
    category = _GTFOBINS["older_names"].get(name, name)
    if category not in CATEGORIES:
        for _ in entries if isinstance(entries, list) else [entries]:
            builder.skip(where, OTHER_FUNCTION)
    elif not isinstance(entries, list):
        builder.skip(where, UNEXPECTED, json.dumps(entries))
    else:
        for number, entry in enumerate(entries):
            _read_entry(f"{where}[{number}]", binary, category, entry, builder)


def _read_entry(where: str, binary: str, category: str, entry: Any, builder: CommandDatasetBuilder) -> None:
    raw = json.dumps(entry, ensure_ascii=False)
    if not isinstance(entry, dict):
        builder.skip(where, UNEXPECTED, raw)
        return
    own = dict(_codes_of_contexts(entry.get("contexts")))
    code = own.pop("unprivileged", entry.get("code"))
    for _ in own:
        builder.skip(where, OTHER_CONTEXT)
    if not isinstance(code, str) or not code.strip():
        builder.skip(where, MISSING_COMMAND, raw)
        return
    command = make_concrete(code.strip("\n").rstrip(), category)
    name = f"{binary}_{category}"
    builder.add_material(where, Material(command, "malicious", category, cluster=binary, name=name, raw=raw))


def _codes_of_contexts(contexts: Any) -> Iterator[tuple[str, str]]:
    """Yield the contexts that have code of their own. A context without any is null; so may be all of them."""
    for name, context in contexts.items() if isinstance(contexts, dict) else ():
        if isinstance(context, dict) and isinstance(context.get("code"), str):
            yield str(name), context["code"]


STARTER = Path(__file__).resolve().parent / "starter"
FIELDS = ("command", "label", "category", "difficulty", "sample_id", "cluster", "reason")
CLASSES = TwoClasses("label", *LABELS, **tables_beside(__file__, "words.toml"))
LARGEST_JSON = 256 * 1024 * 1024  # bytes: a JSON file is read as a whole


def read_dataset(source: str) -> Dataset:
    """Read a source whole.

    Raises SourceError where it is missing, unreadable, malformed as a whole, or gives no command.
    """
    return read_whole(source, lambda: _read(source).result(), "command that can be used")


def _read(source: str) -> CommandDatasetBuilder:
    if source == "starter":
        builder = CommandDatasetBuilder("starter")
        for file in ("malicious.jsonl", "harmless.jsonl"):
            _take_table(STARTER / file, sources.read_mapping("", FIELDS), builder)
        return builder
    path, mapping_text = sources.find_source(source, "a GTFOBins checkout, an aegish .json file")
    if mapping_text is not None:
        builder = CommandDatasetBuilder(sources.as_payload(path.stem))
        _take_table(path, sources.read_mapping(mapping_text, FIELDS), builder)
        return builder
    if path.is_dir():
        return read_gtfobins(path)
    if path.is_file() and path.suffix.lower() == ".json":
        return _read_aegish(path)
    raise sources.unknown_kind(source)


def _take_table(path: Path, mapping: sources.ColumnMapping, builder: CommandDatasetBuilder) -> None:
    for each, columns, label in builder.labelled(path, mapping, ("command", "label"), CLASSES):
        builder.add_material(each.where, _material(each, columns, label))


def _material(record: Record, mapping: sources.ColumnMapping, label: str | None) -> Material:
    texts: dict[str, Any] = {name: sources.as_text(mapping.field(record, name)) for name in FIELDS[2:]}
    return Material(mapping.field(record, "command"), label, note=texts.pop("reason"), raw=record.raw, **texts)


def _read_aegish(path: Path) -> CommandDatasetBuilder:
    builder = CommandDatasetBuilder(sources.as_payload(path.stem))
    for number, entry in enumerate(_aegish_entries(path)):
        where, raw = f"{path.name}: commands[{number}]", json.dumps(entry)
        if not isinstance(entry, dict):
            builder.skip(where, sources.NOT_JSON, raw)
        elif isinstance(entry.get("category"), str) and entry["category"] not in CATEGORIES:
            builder.skip(where, OTHER_FUNCTION)
        elif (label := _aegish_label(entry)) is None:
            builder.skip(where, UNKNOWN_LABEL, raw)
        else:
            category, binary = entry.get("category"), entry.get("binary")
            name = f"{binary}_{category}" if isinstance(binary, str) and category else ""
            command, note, cluster = entry.get("command"), entry.get("prompt"), binary if name else None
            material = Material(command, label, category, note=note, cluster=cluster, name=name, raw=raw)
            builder.add_material(where, material)
    return builder


def _aegish_entries(path: Path) -> Iterator[Any]:
    document = sources.read_json(read_file(path, LARGEST_JSON), path)
    entries = document.get("commands") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise SourceError(
            f"{path} is no aegish command set (no list `commands`) and no array of objects; for JSON Lines, use .jsonl"
        )
    return iter(entries)


def _aegish_label(entry: dict[str, Any]) -> str | None:
    """Find the label: harmless sets say what a guard should answer, the malicious one what each command does."""
    malicious, harmless = LABELS
    if "ground_truth" in entry:
        return {"ALLOW": harmless, "WARN": harmless, "BLOCK": malicious}.get(str(entry["ground_truth"]))
    return malicious if "category" in entry else None
