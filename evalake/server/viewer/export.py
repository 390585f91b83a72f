"""A run as a folder that is opened in a browser without a server: the pages, and beside them files of data.

A page that was opened as a file may load neither modules nor data, but scripts: so the modules become one script, and
each file of data is a script that passes its data to the page. Items are written in parts, so that neither the writer
nor the browser holds the run as a whole.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from string import Template
from tempfile import TemporaryFile
from typing import IO, Literal
from urllib.parse import quote

import polars as pl
from pyarrow import ArrowException
from pydantic import BaseModel, Field

from evalake.contracts.tables import SAMPLES
from evalake.core.errors import LakeError, UsageError
from evalake.core.files import make_folder, write_file
from evalake.server.pages import FOLDER, addresses
from evalake.server.viewer.item import item_contents
from evalake.server.viewer.items import Matching, Wanted, item_views, matching
from evalake.server.viewer.run import run_detail, run_letters, run_values
from evalake.server.viewer.run_index import RunIndex, RunIndexes, replies
from evalake.storage.lake import Lake
from evalake.storage.sql.query import write_csv, write_parquet
from evalake.storage.sql.start import MEGABYTE

# The modules of the pages as one script, for pages that are opened as files: browsers load no modules from those.


# The only forms of import and export in the modules of the pages; a test checks that there are no others.
_IMPORT = re.compile(r'^import \{([\w, ]+)\} from "(/js/[\w/]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)


def bundle(front: Path, entry: str) -> str:
    """Write a module with all that it imports as one script.

    Args:
        front: The folder of the pages.
        entry: The module that is run, like `/js/main.js`.
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


PAGE = "index.html"  # what is opened
IN_LIST = 500  # items of a file with their beginnings
IN_FILE = 20  # items of a file with all their texts
IN_BATCH = 200  # items whose texts are read at once

_TEMPLATE = Path(__file__).with_name("exported.html")
_MARK = "evalake-export.json"  # by which a folder is known to be an export
_PARTIAL = ".partial"
_DATA = "data"
_PAGES = (PAGE, "viewer.js", "style.css", "icon.svg")
_UNQUOTED = "!'()*~"  # by encodeURIComponent, with which the pages make addresses
_OURS = frozenset((_MARK, _PARTIAL, _DATA, *_PAGES))

Tell = Callable[[int, int], None]


def export_run(indexes: RunIndexes, run_id: str, folder: Path, tell: Tell) -> Path:
    """Write a run into a folder, in place of an earlier export that it holds.

    Args:
        indexes: The runs of the lake.
        run_id: The run.
        folder: The folder; what is in it stays as it was until all is written.
        tell: Called with the number of items that are written, and of all items.

    Returns:
        The page to open.

    Raises:
        UsageError: The folder holds something else.
        NotFoundError: The lake has no such run.
        LakeError: The folder cannot be written.
    """
    index = indexes.of(run_id)
    try:
        _take(folder, run_id)
        partial = folder / _PARTIAL
        try:
            _write_pages(partial, run_id)
            _write_run(indexes, index, partial / _DATA)
            _write_items(indexes, index, partial / _DATA, tell)
            _put_in_place(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise LakeError(f"cannot write the export to {folder}: {error.strerror or error}") from error
    return folder / PAGE


def _take(folder: Path, run_id: str) -> None:
    """Make the folder, and mark it as an export, so that the next one may replace it."""
    entries = list(folder.iterdir()) if folder.exists() else []
    there = {each.name for each in entries}
    links = {each.name for each in entries if each.is_symlink()}  # one could lead a file of ours elsewhere
    if there and (_MARK not in there or not there <= _OURS or links):
        strange = sorted(there - _OURS or links or there)[0]
        raise UsageError(f"{folder} holds {strange}, which no export wrote: name a new or an empty folder")
    make_folder(folder, own=True)
    write_file(folder / _MARK, json.dumps({"run_id": run_id}) + "\n")
    shutil.rmtree(folder / _PARTIAL, ignore_errors=True)
    (folder / _PARTIAL).mkdir()


def _write_pages(folder: Path, run_id: str) -> None:
    page = Template(_TEMPLATE.read_text(encoding="utf-8"))
    address = addresses()["viewer"]["run"].format(run_id=quote(run_id, safe=_UNQUOTED))
    text = page.substitute(address=escape(address), day=f"{datetime.now(UTC):%-d %B %Y}")
    write_file(folder / PAGE, text)
    write_file(folder / "viewer.js", bundle(FOLDER, "/js/exported/main.js"))
    for name in ("style.css", "icon.svg"):
        write_file(folder / name, (FOLDER / name).read_bytes())


def _write_run(indexes: RunIndexes, index: RunIndex, data: Path) -> None:
    run_id = index.run["run_id"]
    values = ",".join(value.model_dump_json() for value in run_values(indexes, run_id))
    letters = ",".join(each.model_dump_json() for each in run_letters(indexes, run_id))
    ids = json.dumps(index.samples["sample_hash"].to_list())
    sizes = f'"in_list":{IN_LIST},"in_file":{IN_FILE}'
    run = run_detail(indexes, run_id).model_dump_json()
    _write(data, "run", f'{{"run":{run},"values":[{values}],"letters":[{letters}],"item_ids":{ids},{sizes}}}')


def _write_items(indexes: RunIndexes, index: RunIndex, data: Path, tell: Tell) -> None:
    for number, part in enumerate(index.samples.iter_slices(IN_LIST)):
        answers = index.answers.join(part, on="place", how="semi", maintain_order="left")
        _write_list(data, f"list/{number}", item_views(indexes.lake, index, part, answers))
    files = 0
    for number, part in enumerate(index.samples.iter_slices(IN_BATCH)):
        contents = list(item_contents(indexes.lake, index, part["sample_hash"].to_list()))
        for first in range(0, len(contents), IN_FILE):
            _write_list(data, f"items/{files}", contents[first : first + IN_FILE])
            files += 1
        tell(number * IN_BATCH + part.height, index.samples.height)


def _write_list(data: Path, name: str, views: Sequence[BaseModel]) -> None:
    _write(data, name, f"[{','.join(view.model_dump_json() for view in views)}]")


def _write(data: Path, name: str, text: str) -> None:
    """Write JSON as a script that parses it and passes it to the page: no name in it is special to JavaScript then."""
    file = data / f"{name}.js"
    file.parent.mkdir(parents=True, exist_ok=True)
    quoted = json.dumps(text, ensure_ascii=False)
    write_file(file, f"evalakeHolds({json.dumps(name)}, JSON.parse({quoted}));\n")


def _put_in_place(partial: Path, folder: Path) -> None:
    shutil.rmtree(folder / _DATA, ignore_errors=True)
    for name in (_DATA, *_PAGES):
        (partial / name).replace(folder / name)


# What a filter keeps, as a file: a row an answer, with its texts. CSV cells that a spreadsheet would run get a `'`.


class WantedFile(Wanted):
    """Which items are wanted, and as what kind of file."""

    format: Literal["csv", "jsonl", "parquet"] = Field(description="The kind of file.")


def items_file(indexes: RunIndexes, run_id: str, wanted: WantedFile) -> Iterator[bytes]:
    """Write the answers that match as a file, and return its parts. Raises as `item_page` does."""
    index = indexes.of(run_id)
    frames = _frames(indexes.lake, index, matching(indexes, index, wanted))
    return file_of(frames, wanted.format, spreadsheet_safe=True)


def file_of(frames: Iterable[pl.DataFrame], style: str, *, spreadsheet_safe: bool) -> Iterator[bytes]:
    """Write frames as a file of csv, jsonl or parquet, and return its parts. Raises LakeError where that fails."""
    file = TemporaryFile()  # noqa: SIM115 - for as long as it is sent
    try:
        if style == "csv":
            write_csv(frames, file, spreadsheet_safe=spreadsheet_safe)
        elif style == "parquet":
            write_parquet(frames, file)
        else:
            for frame in frames:
                frame.write_ndjson(file)
        file.seek(0)
    except BaseException as error:
        with suppress(OSError):  # it writes what is left, and fails as the write did
            file.close()
        if isinstance(error, OSError | ArrowException):
            reason = getattr(error, "strerror", None) or error
            raise LakeError(f"the rows cannot be written as {style}: {reason}") from error
        raise
    return _parts_of(file)


def _parts_of(file: IO[bytes]) -> Iterator[bytes]:
    """Read a file in parts, and close it."""
    with file:
        while part := file.read(MEGABYTE):
            yield part


def _frames(lake: Lake, index: RunIndex, found: Matching) -> Iterator[pl.DataFrame]:
    """Yield the answers in the order of their items; one frame without rows where nothing matches."""
    answers = found.answers.filter(pl.col("matches").fill_null(True))
    for first in range(0, max(found.items.height, 1), IN_BATCH):
        items = found.items.slice(first, IN_BATCH).with_row_index("order")
        hashes = items["sample_hash"].to_list()
        inputs = lake.frame(SAMPLES).filter(pl.col("suite") == index.suite.name, pl.col("sample_hash").is_in(hashes))
        texts = inputs.select("sample_hash", "input").unique("sample_hash").collect()
        rows = answers.join(items, on="place").join(texts, on="sample_hash", how="left")
        told = rows.join(replies(lake, index, hashes), on=["sample_hash", "asked", "replicate"], how="left")
        yield (
            told.sort("order", "model", "prompt_type", "judge", "replicate")
            .select(
                *("dataset", "sample_id", "category", "label", "model", "judge", "prompt_type", "replicate"),
                *("verdict", "correct", "score", "error", *index.measures, *index.flags),
                "input",
                pl.col("response").alias("reply"),
            )
            .with_columns(pl.col(pl.Categorical).cast(pl.String))
        )
