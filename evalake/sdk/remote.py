"""Tables that are no plain file (packed, in a bucket, in a database, at Hugging Face) become local copies.

* `table.csv.gz`, and any other table packed by gzip
* `s3://bucket/key.csv`, `gs://…`, `abfs://…`: credentials and endpoint come from the environment, as for the lake
* `postgresql://user@host/db?query=select …` or `?table=NAME`, with the password in PGPASSWORD; `sqlite:///file.db?…`
  likewise: read only
* `hf://owner/name[:config][@revision]#split`, by the library `datasets` (the extra `hf`)

A mapping of columns follows as for any table: after `?`, or after a further `&`. A copy lives as long as the process.
"""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlsplit

from evalake.core.errors import SourceError
from evalake.core.files import LARGEST_IN_ALL, MEGABYTE, Files
from evalake.sdk.sqlite import open_sqlite

if TYPE_CHECKING:
    from sqlalchemy import URL

BUCKETS = ("s3", "gs", "gcs", "abfs", "abfss", "az")
_HUGGING_FACE = re.compile(r"hf://(?P<path>[\w.-]+/[\w.-]+)(?::(?P<config>[\w.-]+))?(?:@(?P<revision>[\w./-]+))?")
_OF_THE_URL = ("application_name", "unix_sock")  # parameters that the driver of Postgres takes


def fetched(source: str) -> tuple[Path, str] | None:
    """Copy what is no plain file; returns the copy and the mapping of columns. None for a plain file.

    Raises SourceError where it cannot be read, or is larger than can be.
    """
    scheme = urlsplit(source).scheme if "://" in source else ""
    path, _, mapping = source.partition("?")
    if source.startswith("hf://"):
        return _of_hugging_face(source)
    if scheme in BUCKETS:
        return unpacked(_of_bucket(path, scheme)), mapping
    if scheme.partition("+")[0] in ("postgresql", "sqlite") and re.search(r"[?&](?:query|table)=", source):
        return _of_database(path, mapping)
    return None


def unpacked(path: Path) -> Path:
    """Unpack a file packed by gzip into a copy without `.gz`; any other file is given as it is."""
    if path.suffix.lower() != ".gz":
        return path
    Files(path, LARGEST_IN_ALL).check(path)
    try:
        with gzip.open(path) as packed:
            return _copied(path.stem, packed, str(path))
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path} cannot be unpacked: {error}") from error


def name_in(source: str, text: str) -> str:
    """Make a file's name of what a source calls its table."""
    name = re.sub(r"[^\w.-]+", "_", text).strip("._")
    if not name:
        raise SourceError(f"the source {source!r} names no table")
    return name


@cache
def _home() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="evalake-sources-", ignore_cleanup_errors=True)


def new_file(name: str) -> Path:
    """Give the place of a new copy of this name."""
    return Path(mkdtemp(dir=_home().name)) / name


def _copied(name: str, stream: Any, source: str) -> Path:
    size = 0
    place = new_file(name)
    with place.open("wb") as file:
        while part := stream.read(MEGABYTE):
            size += len(part)
            if size > LARGEST_IN_ALL:
                raise SourceError(f"{source} holds more than {LARGEST_IN_ALL // MEGABYTE} MB: split it")
            file.write(part)
    return place


def write_rows(name: str, rows: Iterator[dict[str, Any]], source: str) -> Path:
    """Write rows as JSON Lines into a copy. Raises SourceError where they are more than can be read."""
    place = new_file(f"{name}.jsonl")
    with place.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
            if file.tell() > LARGEST_IN_ALL:
                raise SourceError(f"{source} holds more than {LARGEST_IN_ALL // MEGABYTE} MB: ask for less")
    return place


def _of_bucket(uri: str, scheme: str) -> Path:
    from pyarrow import ArrowException, fs

    key = uri.partition("://")[2]
    try:
        if scheme == "s3":
            endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", ""))
            region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
            store: Any = fs.S3FileSystem(
                endpoint_override=endpoint.netloc or None, scheme=endpoint.scheme or "https", region=region
            )
        elif scheme in ("gs", "gcs"):
            store = fs.GcsFileSystem()
        else:
            store, key = fs.FileSystem.from_uri(uri)
        with store.open_input_stream(key, compression=None) as stream:
            return _copied(name_in(uri, key.rpartition("/")[2]), stream, uri)
    except (ArrowException, OSError) as error:
        raise SourceError(f"{uri} cannot be read: {' '.join(str(error).split())[:300]}") from error


def _of_database(url: str, parameters: str) -> tuple[Path, str]:
    """Read a query, or a whole table, of a database in a transaction that cannot write."""
    from sqlalchemy import create_engine, make_url, text
    from sqlalchemy.exc import SQLAlchemyError

    given = parse_qsl(parameters, keep_blank_values=True)
    asked = dict(given)
    name = asked.get("table", "query")
    if "table" in asked and not re.fullmatch(r"\w+(?:\.\w+)?", asked["table"]):
        raise SourceError(f"{asked['table']!r} is no name of a table: write a query after ?query=")
    query = asked.get("query") or f"select * from {name}"
    mapping = "&".join(f"{quote(k)}={quote(v)}" for k, v in given if k not in ("query", "table", *_OF_THE_URL))
    of_url = "&".join(f"{quote(k)}={quote(v)}" for k, v in given if k in _OF_THE_URL)
    if url.startswith("sqlite"):
        file = Path(url.partition("///")[2])
        tables = [name.rpartition(".")[2].lower()] if "table" in asked else []
        with open_sqlite(Files(file, LARGEST_IN_ALL).check(file), tables) as ask:
            return write_rows(name_in(url, name), map(dict, ask(query, {})), url), mapping
    try:
        address = make_url(f"{url}?{of_url}")
        if not address.username:
            raise SourceError("the database URL names no user: give one, as in postgresql://user@host/database")
        engine = create_engine(for_postgres(address))
        try:
            with engine.connect() as connection:
                connection = connection.execution_options(postgresql_readonly=True, stream_results=True)
                rows = connection.execute(text(query)).mappings()
                return write_rows(name_in(url, name), (dict(row) for row in rows), url), mapping
        finally:
            engine.dispose()
    except (SQLAlchemyError, OSError, ValueError) as error:  # hosts and ports that cannot be
        raise SourceError(f"{urlsplit(url).scheme}://… cannot be read: {reason_of(error)}") from error


def for_postgres(url: "URL") -> "URL":
    """Complete the URL of a PostgreSQL by the driver that is installed, and by the password in PGPASSWORD."""
    return url.set(drivername="postgresql+pg8000", password=url.password or os.environ.get("PGPASSWORD"))


def reason_of(error: Exception) -> str:
    """Extract the database's message, on one line; pg8000 returns Postgres's answer as fields, the message under M."""
    cause = getattr(error, "orig", None) or error
    fields = cause.args[0] if cause.args and isinstance(cause.args[0], Mapping) else {}
    return " ".join(str(fields.get("M") or cause).split())


def _of_hugging_face(source: str) -> tuple[Path, str]:
    """Load a split by the library of Hugging Face; no code of a data set is run."""
    address, _, mapping = source.partition("?")
    named, mark, split = address.partition("#")
    asked = _HUGGING_FACE.fullmatch(named)
    if asked is None or not mark or not split:
        raise SourceError(f"{source!r} is not of the form hf://owner/name[:config][@revision]#split")
    try:
        import datasets
    except ImportError as error:
        raise SourceError("hf:// needs the library datasets: install evalake[hf]") from error
    try:
        loaded = datasets.load_dataset(
            asked["path"], asked["config"], revision=asked["revision"], split=split, streaming=True
        )
        rows = (dict(row) for row in loaded)
        return write_rows(name_in(source, f"{asked['path'].rpartition('/')[2]}_{split}"), rows, source), mapping
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{address} cannot be loaded: {type(error).__name__}: {str(error)[:300]}") from error
