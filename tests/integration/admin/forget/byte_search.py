"""What is in the bytes of a lake: raw, and as Parquet has them once its pages are unpacked."""

from pathlib import Path

import pyarrow.parquet as pq

from evalake.storage.lake import Lake


def files_with(lake: Lake, text: str) -> list[Path]:
    """The files of a lake that hold a text, in their bytes or, where they are Parquet, unpacked."""
    return [file for file in Path(lake.uri).rglob("*") if file.is_file() and _holds(file, text)]


def _holds(file: Path, text: str) -> bool:
    if text.encode() in file.read_bytes():
        return True
    return file.suffix == ".parquet" and text in str(pq.ParquetFile(file).read().to_pylist())
