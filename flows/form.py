"""The form of a run in the Prefect UI: what is known is offered as choices, and words stand where types would.

Prefect draws a form from the JSON schemas of a flow's parameters: a list whose items are an enumeration as a choice of
several, and alternatives as tabs with their titles. It tells them apart by their type, so at most one may be a list of
texts; the last one takes any list as JSON, which is also how others than people name what the form does not know.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from core.configuration import Configuration, read_configuration
from core.errors import ConfigurationError
from core.prompt_files import PROMPTS
from core.urls import NO_PASSWORD
from suites.base import Suite
from suites.registry import suite, suite_names

# A run with a URL that holds a password is refused by the server, which would keep it otherwise
_TEXT = {"type": "string", "pattern": NO_PASSWORD}


def _listed(value: Any) -> Any:
    """Split names that were written into a field, by comma or line, into a list."""
    if not isinstance(value, str):
        return value
    return [name.strip() for name in value.replace("\n", ",").split(",") if name.strip()]


def _lines(value: Any) -> Any:
    """Split sources that were written into a field, one a line, into a list."""
    return [line.strip() for line in value.splitlines() if line.strip()] if isinstance(value, str) else value


def _names(known: Iterable[str], written: str) -> WithJsonSchema:
    """Build the schema of a list of names: chosen among the known ones, written, or listed as JSON."""
    choices = {"type": "array", "title": "choose", "items": {"type": "string", "enum": sorted(set(known))}}
    anything = {"title": "JSON", "anyOf": [{"type": "array", "items": _TEXT}, {"type": "null"}]}
    return WithJsonSchema({"anyOf": [choices, {**_TEXT, "title": written}, anything]})


def _either(default: str, other: str, schema: dict[str, Any]) -> WithJsonSchema:
    """Build the schema of a field that may keep its default: the words for the default, or another value."""
    return WithJsonSchema({"anyOf": [{"type": "null", "title": default}, {"title": other, **schema}]})


def _suites() -> list[Suite]:
    return [suite(name) for name in suite_names()]


def _configuration() -> Configuration:
    """Read the configuration; an empty one where it cannot be read, for a run says what is wrong with it."""
    try:
        return read_configuration()
    except ConfigurationError:
        return Configuration()


_CONFIGURED = _configuration()
_OWN_PROMPTS = {name for section in _CONFIGURED.suites.values() for name in section.get(PROMPTS, {})}
_SUBJECTS = {model for each in _suites() if each.calls_subject for model in each.baseline_models}
_SUBJECTS |= _CONFIGURED.models.keys()
_JUDGES = {judge for each in _suites() for judge in each.baseline_judges} | _CONFIGURED.models.keys()
_SOURCES = {source for each in _suites() for source in each.starter}
_PROMPT_TYPES = {prompt_type for each in _suites() for prompt_type in each.prompt_types} | _OWN_PROMPTS

SuiteName = Annotated[str, WithJsonSchema({"type": "string", "enum": list(suite_names())})]
Models = Annotated[Sequence[str] | None, BeforeValidator(_listed), _names(_SUBJECTS, "write, by comma")]
Judges = Annotated[Sequence[str] | None, BeforeValidator(_listed), _names(_JUDGES, "write, by comma")]
Judge = Annotated[str | None, _either("rules", "a model", _TEXT)]
Sources = Annotated[Sequence[str] | None, BeforeValidator(_lines), _names(_SOURCES, "write, one a line")]
PromptTypes = Annotated[Sequence[str] | None, BeforeValidator(_listed), _names(_PROMPT_TYPES, "write, by comma")]
Suites = Annotated[
    Sequence[str] | None, WithJsonSchema({"type": "array", "items": {"type": "string", "enum": list(suite_names())}})
]
SampleNames = Annotated[Sequence[str] | None, WithJsonSchema({"type": "array", "items": {"type": "string"}})]
Tags = Annotated[
    Sequence[str] | None,
    BeforeValidator(_listed),
    WithJsonSchema({"type": "array", "items": {"type": "string", "maxLength": 100}}),
]
Note = Annotated[str | None, Field(max_length=2000), WithJsonSchema({"type": "string", "maxLength": 2000})]
RunName = Annotated[str | None, WithJsonSchema({"type": "string"})]  # "" is none, for a plain field has no other
Day = Annotated[date | None, _either("as scheduled", "this one", {"type": "string", "format": "date"})]
Limit = Annotated[int | None, Field(ge=1), _either("all", "so many", {"type": "integer", "minimum": 1})]
CostCeiling = Annotated[
    float | None, Field(gt=0), _either("as configured", "US dollars", {"type": "number", "exclusiveMinimum": 0})
]
CallCeiling = Annotated[int | None, Field(ge=1), _either("as configured", "so many", {"type": "integer", "minimum": 1})]
MissingShare = Annotated[
    float | None,
    Field(ge=0, le=1),
    _either("as configured", "a share, 0 to 1", {"type": "number", "minimum": 0, "maximum": 1}),
]
LakeUri = Annotated[str | None, _either("the worker's own", "another", _TEXT)]
ConfigurationFile = Annotated[str | None, _either("evalake.toml", "another file", {"type": "string"})]
