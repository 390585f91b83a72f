"""Find out which tool wrote a file of results, and read it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from sys import maxsize
from typing import Any

from evalake.core.errors import SourceError
from evalake.core.files import Files, read_file
from evalake.sdk.remote import unpacked
from evalake.sdk.sources import TABLE_SUFFIXES, utf8
from evalake.sdk.tool_results import ToolResults
from evalake.suites.declared.formats import inspect_log, json_lines, promptfoo, records
from evalake.suites.declared.formats.values import as_mapping, at, read_json

KNOWN = (
    "Inspect .eval and .json, lm-eval samples_*.jsonl with results_*.json, promptfoo results JSON, "
    "Every Eval Ever instances, logs of OpenAI evals, MLflow's eval_results_table.json, traces of Langfuse with "
    "scores, and tables with columns named by a mapping (FILE?input=COLUMN&reply=COLUMN&score=COLUMN)"
)
_OTHERWISE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_IN_A_FOLDER = ("*.eval", "samples_*.jsonl", "*_samples.jsonl", "????-??-??T*_*.json")  # the last: Inspect's in JSON
_ZIP = b"PK\x03\x04"
_BEGINNING = 4096  # bytes by which a file is told from recorded results


def read_tool_results(files: Sequence[Path]) -> list[ToolResults]:
    """Read the results of other tools in files and folders; [] where every one is of no known tool.

    Raises SourceError where one is of a known tool and another is not, or one of a known tool cannot be read.
    """
    found = {file: read_one(file) for file in _files(files)}
    read = [each for results in found.values() for each in results or ()]
    if read and (unknown := [file for file, results in found.items() if results is None]):
        raise SourceError(f"{unknown[0]} is of no known tool; known are {KNOWN}: import it apart")
    return read


def read_one(file: Path) -> list[ToolResults] | None:
    """Read a file; [] for a results file of lm-eval, which its samples files need; None for one of no known tool.

    Raises SourceError where it is of a known tool and not as that tool writes it.
    """
    suffix = Path(file.name.partition("?")[0]).suffix.lower()
    if (suffix in TABLE_SUFFIXES or "?" in file.name) and records.is_table(str(file)):
        return [records.read_rows(str(file))]
    if not file.exists() and "?" in file.name:
        raise SourceError(
            f"{file} is no table of results: map input, reply, and score or correct to its columns, which are "
            f"{', '.join(records.columns_of(str(file)))}"
        )
    try:
        return _read(file.with_suffix("") if file.suffix == ".gz" else file, read_file(unpacked(file)))
    except _OTHERWISE as error:
        raise SourceError(f"{file} is not as its tool writes it: {type(error).__name__}: {error}") from error


def _read(file: Path, content: bytes) -> list[ToolResults] | None:
    if not content.strip():
        raise SourceError(f"{file} is empty: there is no result in it")
    if content.startswith(_ZIP):
        return [inspect_log.read_archive(content, file.name)] if inspect_log.is_archive(content) else None
    if not content[:_BEGINNING].lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return None
    first = content.partition(b"\n")[0]
    line = _decoded(first)
    if json_lines.is_sample(line):
        return [_read_samples(file, content)]
    if records.is_spec(line):
        return [records.read_log(utf8(content, file).split("\n"), file.name)]
    if json_lines.is_instance(line):
        return json_lines.read_instances(utf8(content, file).split("\n"), _aggregate_of(file), file.name)
    if line is not None and content.strip() != first.strip():
        return None  # JSON Lines
    document = _decoded(content)
    if inspect_log.is_document(document):
        return [inspect_log.read_document(document, file.name)]
    if records.is_mlflow(document):
        return [records.read_mlflow(document, file.name)]
    if records.is_langfuse(document):
        return records.read_langfuse(document, file.name)
    if promptfoo.is_document(document):
        return [promptfoo.read_document(document, file.name)]
    return [] if json_lines.is_results(document) or json_lines.is_aggregate(document) else None


def _beside(file: Path) -> Iterator[tuple[Path, Any]]:
    """Yield the JSON files beside a file, decoded; what is none, too large or a link out is passed over."""
    for other in sorted(file.parent.glob("*.json")):
        with suppress(SourceError):
            yield other, read_json(Files(file.parent).read(other), str(other))


def _decoded(content: bytes) -> Any:
    try:
        return read_json(content, "it")
    except SourceError:
        return None


def _files(files: Sequence[Path]) -> Iterator[Path]:
    for file in files:
        if file.is_dir():
            guarded = Files(file, in_all=maxsize)
            for pattern in _IN_A_FOLDER:
                for each in sorted(each for each in file.rglob(pattern) if each.is_file()):
                    guarded.check(each)  # which the user did not name
                    yield each
        else:
            yield file


def _read_samples(file: Path, content: bytes) -> ToolResults:
    results, task = _results_of(file)
    return json_lines.read_samples(utf8(content, file).split("\n"), results, task, file.name)


def _aggregate_of(file: Path) -> Mapping[str, Any] | None:
    """Find the aggregate that names a file of instances, beside it."""
    for _, document in _beside(file):
        named = str(at(document, "detailed_evaluation_results.file_path")).rpartition("/")[2]
        if named == file.name and json_lines.is_aggregate(document):
            return as_mapping(document)
    return None


def _results_of(file: Path) -> tuple[Mapping[str, Any], str]:
    """Find the results file of a samples file: of those beside it the one that shares most of its name's ending."""
    found = []
    for other, document in _beside(file):
        if json_lines.is_results(document) and (task := json_lines.task_of(file.stem, document)):
            found.append((_common_ending(file.stem, other.stem), len(task), document, task))
    if not found:
        raise SourceError(f"{file} has no results file of its task beside it: lm-eval writes results_*.json; keep both")
    best = max(found, key=lambda each: each[:2])
    return best[2], best[3]


def _common_ending(one: str, other: str) -> int:
    """Count the characters that two names end with alike: the date of one evaluation."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
