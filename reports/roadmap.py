"""A roadmap as one HTML file that needs no network and no script, and the same as JSON beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports.files import as_json, write_files
from reports.template import fill

PAGE, DATA = "roadmap.html", "roadmap.json"


def write_roadmap(data: Mapping[str, Any], folder: Path) -> Path:
    """Write page and data into a folder, which is made where it is missing; returns the page's path.

    Raises UsageError naming the folder where it cannot be written.
    """
    return write_files(folder, {DATA: as_json(data), PAGE: render(data)})


def render(data: Mapping[str, Any]) -> str:
    """Render the page of what `as_data` of a roadmap gives."""
    return fill("roadmap.html.j2", roadmap=data)
