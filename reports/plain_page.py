"""Pages that need neither network nor script, each with its data as JSON beside it: a roadmap, what a check found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports.files import as_json, write_files
from reports.template import fill


def write_roadmap(data: Mapping[str, Any], folder: Path) -> Path:
    """Write the page of what `as_data` of a roadmap gives, as `write_page` of a report does."""
    return _write("roadmap", data, folder, fill("roadmap.html.j2", roadmap=data))


def write_data_docs(data: Mapping[str, Any], folder: Path) -> Path:
    """Write the page of what `tasks.jobs.data_docs` gathers: table by table and rule by rule, what a check found."""
    return _write("data-docs", data, folder, fill("data_docs.html.j2", check=data))


def _write(name: str, data: Mapping[str, Any], folder: Path, page: str) -> Path:
    """Write page and data into a folder, which is made where it is missing; returns the page's path.

    Raises UsageError naming the folder where it cannot be written.
    """
    return write_files(folder, {f"{name}.json": as_json(data), f"{name}.html": page})
