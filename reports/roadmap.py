"""A roadmap as one HTML file that needs no network and no script, and the same as JSON beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.files import as_json, write_files
from reports.wording import UNKNOWN, visible

PAGE, DATA = "roadmap.html", "roadmap.json"
LONGEST_TEXT = 600


def write_roadmap(data: Mapping[str, Any], folder: Path) -> Path:
    """Write page and data into a folder, which is made where it is missing; returns the page's path.

    Raises UsageError naming the folder where it cannot be written.
    """
    return write_files(folder, {DATA: as_json(data), PAGE: render(data)})


def render(data: Mapping[str, Any]) -> str:
    """The page of what `as_data` of a roadmap gives."""
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = _shown
    style = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    return environment.get_template("roadmap.html.j2").render(roadmap=data, style=Markup(style))


def _shown(value: object) -> str:
    """Text of others as it is safe to show."""
    return UNKNOWN if value is None else visible(value, LONGEST_TEXT)
