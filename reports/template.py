"""Pages from templates: what was not written by us is escaped, and a name that a template lacks is an error."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports.wording import UNKNOWN, visible

LONGEST_TEXT = 600
_FOLDER = Path(__file__).parent / "templates"


def fill(template: str, **values: Any) -> str:
    """Fill a template, to which the pages' `style` and the filter `shown` for text of others are given too."""
    return environment().get_template(template).render(style=Markup(source("style.css")), **values)


@cache
def environment() -> Environment:
    """Make Jinja's environment, which knows the templates; each is compiled once."""
    made = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["shown"] = _shown
    return made


def source(name: str) -> str:
    """Read a file that stands beside the templates."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def _shown(value: object) -> str:
    return UNKNOWN if value is None else visible(value, LONGEST_TEXT)
