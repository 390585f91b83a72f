"""What a check of a lake found, table by table and rule by rule: one HTML file without script, and JSON beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.files import as_json, write_files
from reports.wording import UNKNOWN, visible

PAGE, DATA = "data-docs.html", "data-docs.json"
LONGEST_TEXT = 600


def write_data_docs(data: Mapping[str, Any], folder: Path) -> Path:
    """Write page and data into a folder, which is made where it is missing; returns the page's path.

    Raises UsageError naming the folder where it cannot be written.
    """
    return write_files(folder, {DATA: as_json(data), PAGE: render(data)})


def render(data: Mapping[str, Any]) -> str:
    """The page of what `tasks.jobs.data_docs` gathers."""
    environment = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = _shown
    style = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    return environment.get_template("data_docs.html.j2").render(check=data, style=Markup(style))


def _shown(value: object) -> str:
    """Text of others as it is safe to show."""
    return UNKNOWN if value is None else visible(str(value), LONGEST_TEXT)
