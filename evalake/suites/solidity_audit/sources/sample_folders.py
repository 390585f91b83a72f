"""Samples as BlockBench keeps them: a folder of contracts, with folders of their truths and metadata beside it.

    contracts/SAMPLE.sol, or contracts/SAMPLE/*.sol      the contract; of several files, all of them
    ground_truth/SAMPLE.json, metadata/SAMPLE.json       what is known of it; either may be missing, not both
    code_acts_annotation/SAMPLE.yaml                     what its statements do, by the original's taxonomy
    context/SAMPLE/*, context_contracts/, protocol_docs/ further contracts and documents; or metadata list their paths
    index.json, manifest.json                            what should be there, which is compared

A sample of several files is one text: each file under a line `// File: NAME`, documents as comments. Markers of lines
(`/*LN-7*/`) are taken out, since lines are stated by them, and prompts number lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml import YAMLError

from evalake.core.errors import SourceError
from evalake.core.files import MEGABYTE, FileRefusedError, Files, tables_beside
from evalake.sdk.json_in_text import objects
from evalake.sdk.sample import NOT_READ
from evalake.sdk.sources import as_payload
from evalake.suites.solidity_audit.sources import BAD_TRUTH, AuditBuilder, Material, Source, read_object
from evalake.suites.solidity_audit.sources.round_fields import cluster_of, read_truth
from evalake.suites.solidity_audit.sources.round_files import part_of, text_of
from evalake.suites.solidity_audit.truth import GroundTruth, normalised

CONTRACTS, TRUTHS, METADATA, ANNOTATIONS = "contracts", "ground_truth", "metadata", "code_acts_annotation"
FURTHER = ("context", "context_contracts", "protocol_docs", "protocol_documents", "docs")
"""Folders of further contracts and documents, by sample."""
LISTED = (
    *("context_contracts", "context_files", "context", "files"),
    *("protocol_docs", "protocol_documents", "protocol_doc"),
)
"""Fields of metadata that list paths of further files."""
CODE, DOCUMENTS = (".sol", ".vy", ".rs", ".move"), (".md", ".txt")
BACKUPS = (".bak", ".backup", ".old", ".orig", ".swp", ".tmp", "~")
DEEPEST = 4  # folders below the source
LARGEST_FILE = 16 * MEGABYTE

BACKUP, OTHER_FILE = "backup file", "not a contract"
NO_TRUTH, TRUTH_ALONE = "contract without ground truth", "ground truth without contract"
NO_FURTHER = "a file that metadata list is missing"
UNKNOWN = ("unknown", "none", "n/a")
"""Words that state no severity."""


def sample_folders(folder: Path) -> list[Path]:
    """List the folder and those in it that hold contracts with truths or metadata beside them."""
    found = [
        at.parent
        for depth in range(DEEPEST)
        for at in folder.glob("/".join([*("*",) * depth, CONTRACTS]))
        if at.is_dir() and any((at.parent / name).is_dir() for name in (TRUTHS, METADATA))
    ]
    return sorted(found)


def read_sample_folders(source: Path, folders: Sequence[Path], builder: AuditBuilder) -> AuditBuilder:
    """Read the samples of every folder; what is no sample is counted by reason."""
    files = Files(source, LARGEST_FILE)
    parents = _parents(folders, files)
    for folder in folders:
        contracts = dict(_contracts(folder / CONTRACTS, source, builder))
        described: dict[str, list[Path]] = {}
        for path in (path for part in (METADATA, TRUTHS) for path in _json_files(folder / part, source, builder)):
            described.setdefault(path.stem, []).append(path)
        for name, parts in contracts.items():
            where = _where(parts[0], source)
            if name not in described:
                builder.skip(where, NO_TRUTH)
                continue
            try:
                _take(folder, name, parts, described[name], source, files, builder, parents)
            except FileRefusedError as refused:
                builder.skip(where, refused.reason, NOT_READ)
        for name in sorted(described.keys() - contracts.keys()):
            builder.skip(f"{_where(folder, source)}/{as_payload(name)}", TRUTH_ALONE)
    _compare_lists(source, files, builder)
    if builder.implied:
        builder.notes.append(
            f"{len(builder.implied)} samples place a vulnerability without is_vulnerable: taken as vulnerable"
        )
    return builder


def _contracts(folder: Path, source: Path, builder: AuditBuilder) -> Iterator[tuple[str, list[Path]]]:
    """Yield each sample's name with its files; leave out what is none."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if parts := [part for part in sorted(path.rglob("*")) if _is_code(part, source, builder)]:
                yield path.name, parts
        elif _is_code(path, source, builder):
            yield path.stem, [path]


def _is_code(path: Path, source: Path, builder: AuditBuilder) -> bool:
    if path.is_dir():
        return False
    if _is_backup(path.name):
        builder.skip(_where(path, source), BACKUP)
    elif path.suffix.casefold() not in CODE:
        builder.skip(_where(path, source), OTHER_FILE)
    else:
        return True
    return False


def _is_backup(name: str) -> bool:
    stem = name.casefold().rpartition(".")[0]
    return name.casefold().endswith(BACKUPS) or stem.endswith(("_backup", ".backup", "_bak", ".bak", " copy", "_old"))


def _json_files(folder: Path, source: Path, builder: AuditBuilder) -> Iterator[Path]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if _is_backup(path.name):
            builder.skip(_where(path, source), BACKUP)
        elif path.suffix.casefold() == ".json":
            yield path


def _take(
    folder: Path,
    name: str,
    parts: Sequence[Path],
    described: Sequence[Path],
    source: Path,
    files: Files,
    builder: AuditBuilder,
    parents: Mapping[str, str],
) -> None:
    """Add one sample, or leave it out for a reason; of its descriptions the last one's word counts, the truth's."""
    where, raw, value = _where(parts[0], source), "", dict[str, Any]()
    for path in described:
        raw, given = read_object(path, files)
        if given is None:
            builder.skip(_where(path, source), BAD_TRUTH, raw)
            return
        value |= given
    if is_implied(value):
        builder.implied.append(name)
        value["is_vulnerable"] = True
    if str(value.get("severity")).strip().casefold() in UNKNOWN:
        value["severity"] = None
    try:
        truth = read_truth(value)
    except SourceError as error:
        builder.skip(f"{where} ({error})", BAD_TRUTH, raw)
        return
    missing, further = _further(folder, name, value)
    if missing:
        builder.skip(f"{where} ({as_payload(missing[0])})", NO_FURTHER, raw)
        return
    text = _joined([*parts, *further], folder, files)
    within = folder.relative_to(source).as_posix()
    sample_id = "/".join([builder.dataset, *([within] if within != "." else []), name])
    origin = origin_of(name, value, parents)
    given_truth = {**_of_text(truth, text, parts[0].name), **origin, "code_act": _code_act(folder, name, files)}
    cluster = f"/{origin['base']}" if origin else cluster_of(value) or name
    material = Material(text.text, given_truth, as_payload(sample_id), cluster, text_of(value.get("description")), raw)
    builder.add_material(where, material)


def _parents(folders: Sequence[Path], files: Files) -> Mapping[str, str]:
    """Read of every variant the sample that it was made of; what cannot be read is refused with its sample."""
    parents = {}
    for path in (path for folder in folders for path in sorted((folder / METADATA).glob("*.[jJ][sS][oO][nN]"))):
        try:
            value = read_object(path, files)[1] or {}
        except FileRefusedError:
            continue
        if (parent := parent_of(value)) is not None:
            parents[path.stem] = parent
    return parents


def _code_act(folder: Path, name: str, files: Files) -> str | None:
    """Read the annotation of a sample's code acts; None where there is none that can be read."""
    path = folder / ANNOTATIONS / f"{name}.yaml"
    try:
        return code_act_of(files.read(path).decode("utf-8-sig", "replace")) if path.exists() else None
    except (YAMLError, ValueError, OverflowError, RecursionError):
        return None


def is_implied(value: Mapping[str, Any]) -> bool:
    """Tell whether a truth places a vulnerability of a type, but leaves out is_vulnerable."""
    stated = value.get("ground_truth", value.get("is_vulnerable"))
    placed = any(value.get(name) for name in ("vulnerable_function", "vulnerable_functions", "vulnerable_lines"))
    return stated is None and placed and text_of(value.get("vulnerability_type")) is not None


def _of_text(truth: GroundTruth, text: Source, first: str) -> Mapping[str, Any]:
    """Fit a truth to the text: lines count from the text's first, and a safe contract has no vulnerability."""
    if not truth.is_vulnerable:
        return {"is_vulnerable": False, "difficulty_tier": truth.difficulty_tier}
    before = text.lines_before.get(first, 0)
    lines = sorted(before + text.marked.get(line, line) for line in truth.vulnerable_lines)
    return truth.model_dump() | {"vulnerable_lines": lines}


def _further(folder: Path, name: str, value: Mapping[str, Any]) -> tuple[list[str], list[Path]]:
    """Find the sample's further files: those of its own folders, and those in its metadata; missing ones first."""
    found = [
        path
        for part in FURTHER
        for path in sorted([*folder.glob(f"{part}/{name}/**/*"), *folder.glob(f"{part}/{name}.*")])
        if path.suffix.casefold() in (*CODE, *DOCUMENTS) and not _is_backup(path.name)
    ]
    stated = [value[field] for field in LISTED if field in value]
    paths = [path for given in stated for path in (given if isinstance(given, list) else [given]) if text_of(path)]
    listed = {path: folder / path for path in paths if path.casefold().endswith((*CODE, *DOCUMENTS))}
    missing = [path for path, at in listed.items() if not at.is_file()]
    main = folder / CONTRACTS / f"{name}.sol"
    return missing, [*dict.fromkeys(path for path in (*found, *listed.values()) if path != main)]


def _joined(paths: Sequence[Path], folder: Path, files: Files) -> Source:
    read = [without_markers(files.read(path).decode("utf-8-sig", "surrogateescape")) for path in paths]
    texts, marked = [text for text, _ in read], read[0][1]
    if len(paths) == 1:
        return Source(texts[0], marked=marked)
    parts: list[str] = []
    before: dict[str, int] = {}
    count = 0
    for path, text in zip(paths, texts, strict=True):
        before.setdefault(path.name, count + 1)
        is_code = path.suffix.casefold() in CODE
        shown = text if is_code else "\n".join(f"// {line}".rstrip() for line in text.splitlines())
        title = "File" if is_code else "Document"
        parts.append(f"// {title}: {as_payload(path.relative_to(folder).as_posix())}\n{shown.rstrip()}\n")
        count += parts[-1].count("\n")
    return Source("".join(parts), before, marked)


def _compare_lists(source: Path, files: Files, builder: AuditBuilder) -> None:
    """Note where index or manifest state other samples than there are."""
    seen = {sample.sample_id.rpartition("/")[2] for sample in builder.samples}
    for name in ("index.json", "manifest.json"):
        if not (source / name).is_file():
            continue
        value = read_object(source / name, files)[1] or {}
        given = next((value[field] for field in ("selected_samples", "samples") if field in value), None)
        named = (text_of(each.get("id")) or text_of(each.get("sample_id")) for each in objects(given))
        listed = {each for each in named if each is not None}
        count = value.get("total_files", value.get("total_contracts"))
        if absent := listed - seen:
            others = len(seen - listed)
            builder.notes.append(
                f"{name} lists {len(listed)} samples: {len(absent)} of them are not here, {others} others are"
            )
        if isinstance(count, int) and count != len(seen):
            builder.notes.append(f"{name} states {count} contracts, {len(seen)} samples were read")


def _where(path: Path, source: Path) -> str:
    return as_payload(path.relative_to(source).as_posix())


# A sample's origin: its base, its transformation, the incident, line markers and code acts.


ORIGINAL = "original"
_SPELLINGS = tables_beside(__file__, "words.toml")["transformations"]
_OF_VARIANT = re.compile(r"^(?:ms|sn|nc|tr|fp|df|gs|ss(?:_l\d+)?|ch(?:_[a-z]+)?)_(?=[a-z]+(?:_t\d+)?_\d+$)")
"""How a variant's name begins, before its base's: `ch_medical_tc_001` is made of `tc_001`."""

_MARKER = re.compile(r"^[ \t]*/\*LN-(\d{1,7})\*/ ?", re.MULTILINE)
_ROOT_CAUSE = "ROOT_CAUSE"


def transformation_of(value: Mapping[str, Any], folder: str | None = None) -> str | None:
    """Read how a sample was made: by its metadata, or else by the name of its folder."""
    named = next((text for name in ("transformation", "variant_type") if (text := text_of(value.get(name)))), folder)
    word = normalised(named or "")
    return _SPELLINGS.get(word, word) or (ORIGINAL if text_of(value.get("original_subset")) else None)


def base_of(name: str, value: Mapping[str, Any], parents: Mapping[str, str]) -> str:
    """Name the sample that this one was made of, over all steps; its own name where it was made of none."""
    stated = part_of(value, "transformation").get("original_id")
    seen, base = {name}, text_of(stated) or parents.get(name, name)
    while base in parents and base not in seen:
        seen.add(base)
        base = parents[base]
    return _OF_VARIANT.sub("", base)


def origin_of(
    name: str, value: Mapping[str, Any], parents: Mapping[str, str], folder: str | None = None
) -> Mapping[str, Any]:
    """Collect the fields of ground truth about a sample's origin; empty for a sample that states none."""
    if (how := transformation_of(value, folder)) is None:
        return {}
    incident = next((text for each in ("incident", "exploit_name") if (text := text_of(value.get(each)))), None)
    return {"base": base_of(name, value, parents), "transformation": how, "incident": incident}


def parent_of(value: Mapping[str, Any]) -> str | None:
    """Read the sample that a variant was made of, in its last step."""
    return cluster_of(value) if text_of(value.get("variant_parent_id")) else None


def without_markers(text: str) -> tuple[str, Mapping[int, int]]:
    """Take out markers (`/*LN-7*/`) at the beginnings of lines; return the line of each marker's number, too."""
    lines: dict[int, int] = {}
    line, end = 1, 0
    for match in _MARKER.finditer(text):
        line, end = line + text.count("\n", end, match.start()), match.start()
        lines.setdefault(int(match[1]), line)
    return _MARKER.sub("", text), lines


def code_act_of(text: str) -> str | None:
    """Read what the first statement at a vulnerability's root does; None where none is annotated so.

    Raises yaml.YAMLError where the annotation is not YAML.
    """
    given = yaml.load(text, Loader=yaml.BaseLoader)  # texts as they stand: no dates, no merged keys
    acts = given.get("code_acts") if isinstance(given, Mapping) else None
    for act in acts if isinstance(acts, list) else ():
        if isinstance(act, Mapping) and _ROOT_CAUSE in [
            part.get("security_function") for part in (act, part_of(act, "vulnerable"))
        ]:
            return normalised(text_of(act.get("type")) or "") or None
    return None
