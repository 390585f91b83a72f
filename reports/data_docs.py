"""What a check of a lake found, table by table and rule by rule: one HTML file without script, and JSON beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports.files import as_json, write_files
from reports.template import fill

PAGE, DATA = "data-docs.html", "data-docs.json"


def write_data_docs(data: Mapping[str, Any], folder: Path) -> Path:
    """Write page and data into a folder, which is made where it is missing; returns the page's path.

    Raises UsageError naming the folder where it cannot be written.
    """
    return write_files(folder, {DATA: as_json(data), PAGE: render(data)})


def render(data: Mapping[str, Any]) -> str:
    """Render the page of what `tasks.jobs.data_docs` gathers."""
    return fill("data_docs.html.j2", check=data)
