"""Pages from templates escape what others wrote, carry their own style, and show what would hide."""

import pytest
from jinja2 import UndefinedError

from evalake.reports.page import LONGEST_TEXT, fill, source


def check(name: str) -> dict[str, object]:
    table = {"table": name, "purpose": "p", "rows": 0, "findings": [], "rules": [], "broken": False}
    return {"title": "t", "lake": name, "tables": [table], "checked_at": "now"}


def test_a_template_without_its_values_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        fill("data_docs.html.j2")


def test_files_beside_the_templates_are_read() -> None:
    assert "{" in source("style.css")
    assert LONGEST_TEXT > 0
