"""The judge's prompts: templates of this folder, filled in one pass, and the hash that tells criteria apart."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from core.hashing import content_hash

_FOLDER = Path(__file__).resolve().parent / "templates"
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


@cache
def templates() -> Mapping[str, str]:
    """Every template by its name: system, request, output_schema, reminder, missing_tools."""
    return {file.stem: file.read_text(encoding="utf-8").strip() for file in sorted(_FOLDER.glob("*.md"))}


@cache
def criteria_hash() -> str:
    """SHA-256 over every template: scores under different criteria do not compare."""
    return content_hash(templates())


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its placeholders replaced, in one pass: a `{{…}}` within a value stays text.

    A placeholder without a value is a mistake in the template, and raises KeyError.
    """
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def request_text(mark: str, alert: str, conversation: str) -> str:
    """The first turn's user message."""
    values = {"mark": mark, "alert": alert, "conversation": conversation, "output_schema": templates()["output_schema"]}
    return fill(templates()["request"], values)
