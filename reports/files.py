"""Files of a report, each written whole or not at all."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import UsageError


def as_json(data: Any) -> str:
    """Write data as JSON, as a report's file holds it."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)


def write_files(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write texts into a folder, which is made where it is missing; returns the path of the last.

    Files of an earlier report are replaced whole. Raises UsageError naming the folder where it cannot be written.

    Args:
        folder: The folder.
        texts: What is written, by the file's name.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            _replace(folder / name, text)
    except OSError as error:
        raise UsageError(f"cannot write the report to {folder}: {error.strerror or error}") from error
    return folder / list(texts)[-1]


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n", errors="backslashreplace")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
