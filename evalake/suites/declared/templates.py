"""Jinja templates in a sandbox: nothing of Python is reached from them, and a missing column is an error."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evalake.core.errors import SuiteError

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, autoescape=False, finalize=lambda value: "" if value is None else value
)


@lru_cache(maxsize=256)
def template(text: str) -> Template:
    """Compile a template. Raises SuiteError where it is none, with its line."""
    try:
        return _ENVIRONMENT.from_string(text)
    except (TemplateError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        raise SuiteError(f"the template is not valid Jinja{f' (its line {line})' if line else ''}: {error}") from error


def variables(text: str) -> set[str]:
    """Find the columns that a template names; none where it is no template."""
    try:
        return find_undeclared_variables(_ENVIRONMENT.parse(text)) - {"row"}
    except TemplateError:
        return set()


def rendered(text: str, columns: Mapping[str, Any]) -> str:
    """Render a template over the columns. Raises SuiteError where it names a column that the sample lacks."""
    try:
        return template(text).render({"row": columns, **columns})  # row["two words"] is any column
    except UndefinedError as error:
        raise SuiteError(f"the template cannot be filled: {error}") from error
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError) as error:
        raise SuiteError(f"the template cannot be filled: {type(error).__name__}: {error}") from error
