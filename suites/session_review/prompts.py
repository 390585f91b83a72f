"""The judge's prompts: sets of templates, filled in one pass, and the hash that tells criteria apart."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from core.errors import ConfigurationError
from core.hashing import content_hash
from core.prompt_files import TEMPLATES
from suites.base.own_prompts import own_prompt

_FOLDER = Path(__file__).resolve().parent / "templates"
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


PROCESS_FIRST, OUTCOME_FIRST = "process_first", "outcome_first"
SETS = (PROCESS_FIRST, OUTCOME_FIRST)
"""The sets of templates that ship; the first is used where nothing is configured."""


@cache
def templates(of: str = PROCESS_FIRST) -> Mapping[str, str]:
    """Read every template of a set by its name: system, request, output_schema, reminder, missing_tools."""
    return _read(_FOLDER) if of == PROCESS_FIRST else {**templates(), **_read(_FOLDER / of)}


def _read(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text(encoding="utf-8").strip() for file in sorted(folder.glob("*.md"))}


PARTS = ("system", "request", "output_schema", "reminder", "missing_tools")
"""The parts that a configured prompt may replace; the suite's stand for the others."""

PROMPT_VERSION = "2"  # changes with what is put into the templates; 2: the mark is made by the lake's secret

_ASKED = {"mark", "alert", "conversation"}  # what a request has to hand over


def templates_of(options: Mapping[str, Any], prompt_type: str) -> Mapping[str, str]:
    """Collect every template of a prompt type: those of the set in use, or what the configuration replaces them by."""
    chosen = options.get(TEMPLATES, PROCESS_FIRST)
    in_use = templates(chosen) if isinstance(chosen, str) else {**templates(), **chosen}
    return {**in_use, **own_prompt(options, prompt_type)}


def check_prompt(parts: Mapping[str, str]) -> None:
    """Raise ConfigurationError where configured templates lack a needed placeholder, or have an unknown one."""
    for name, text in parts.items():
        wanted, there_are = set(_PLACEHOLDER.findall(text)), _ASKED | {"output_schema"} if name == "request" else set()
        if missing := sorted(_ASKED - wanted) if name == "request" else []:
            raise ConfigurationError(f"{name} has no {{{{{missing[0]}}}}}, in whose place the session is put")
        if unknown := sorted(wanted - there_are):
            raise ConfigurationError(f"nothing is known to put in the place of {{{{{unknown[0]}}}}} in {name}")


@cache
def criteria_hash() -> str:
    """Compute the criteria hash where nothing is configured: scores under others are not comparable."""
    return criteria_hash_of({}, "direct")


def criteria_hash_of(options: Mapping[str, Any], prompt_type: str) -> str:
    """Compute SHA-256 over every template of a prompt type, and the version of what fills them."""
    return content_hash({**templates_of(options, prompt_type), "version": PROMPT_VERSION})


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders of a template, in one pass: a `{{…}}` within a value stays text.

    A placeholder without a value is a mistake in the template, and raises KeyError.
    """
    return _PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], template)


def request_text(mark: str, alert: str, conversation: str, texts: Mapping[str, str]) -> str:
    """Write the first turn's user message by these templates."""
    values = {"mark": mark, "alert": alert, "conversation": conversation, "output_schema": texts["output_schema"]}
    return fill(texts["request"], values)
