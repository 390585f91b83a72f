"""Files of a report, each written whole or not at all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import UsageError
from core.output_files import make_folder, write_file


def as_json(data: Any) -> str:
    """Write data as JSON, as a report's file holds it."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)


def write_files(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write texts into a folder, which is made where it is missing; returns the path of the last.

    Files of an earlier report are replaced whole. Raises UsageError naming the folder where it cannot be written, or
    is not the user's alone.

    Args:
        folder: The folder.
        texts: What is written, by the file's name.
    """
    try:
        make_folder(folder, own=True)
        for name, text in texts.items():
            write_file(folder / name, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"cannot write the report to {folder}: {error.strerror or error}") from error
    return folder / list(texts)[-1]
