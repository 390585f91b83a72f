"""JSON from outside, read strictly: the base of its models, what a name is, and messages about all that is wrong."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from contracts.contract import fits_folder
from core.errors import SourceError
from suites.base.sources import is_storable

MOST_FLAWS = 10
IGNORED = "expected_"


class Strict(BaseModel):
    """Base of frozen models that refuse unknown fields, values of another type, and numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _named(text: str) -> str:
    if not (text.strip() and is_storable(text)):
        raise ValueError("blank, or text that cannot be stored (half a surrogate pair, or NUL)")
    return text


Name = Annotated[str, AfterValidator(_named)]
"""Text by which rows are told apart, or looked for."""


def _fitting(model: str) -> str:
    if not fits_folder(model):
        raise ValueError("too long for the name of a model")
    return model


ModelName = Annotated[Name, AfterValidator(_fitting)]
"""The name of a model or judge, which result tables have folders of."""

Line = TypeVar("Line", bound=Strict)


def read_line(kind: type[Line], line: Mapping[str, Any]) -> Line:
    """Read a decoded line of recorded results. Fields that start with `expected_` are ignored.

    Raises SourceError naming what is unknown, missing, or not what it must be.
    """
    try:
        return kind.model_validate({key: value for key, value in line.items() if not key.startswith(IGNORED)})
    except ValidationError as error:
        raise SourceError("; ".join(explain(error))) from error
    except (RecursionError, OverflowError) as error:
        raise SourceError("the line is nested too deeply, or holds a number that is too large") from error


def explain(error: ValidationError) -> tuple[str, ...]:
    """Describe flaws as `where: what`, and the wrong word if there is one; at most MOST_FLAWS, unknown fields first."""
    flaws = error.errors(include_url=False, include_context=False)
    flaws.sort(key=lambda flaw: flaw["type"] != "extra_forbidden")
    return tuple(map(_describe, flaws[:MOST_FLAWS]))


def _describe(flaw: Mapping[str, Any]) -> str:
    where, what, given = ".".join(map(str, flaw["loc"])), str(flaw["msg"]).removeprefix("Value error, "), flaw["input"]
    if flaw["type"] == "extra_forbidden":
        return f"unknown field {where[:60]!r}"
    if flaw["type"] == "literal_error" and isinstance(given, str):
        what += f", not {given[:60]!r}"
    return f"{where}: {what}" if where else what
