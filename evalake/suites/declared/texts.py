"""What a user writes: a suite's file with the line of each field, and the patterns, schemas and templates in it."""

import json
import re
import tomllib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import regex
import yaml
from jinja2 import StrictUndefined, Template, TemplateError, UndefinedError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evalake.core.errors import SuiteError
from evalake.core.files import MEGABYTE, FileRefusedError, read_file

# Regular expressions in Python's dialect: the `regex` library, unlike `re`, gives up in time.

SECONDS = 2.0
"""Of the processor, after which one search is given up."""

MOST_GIVEN_UP = 3
"""Searches of one pattern, after which it is no longer tried."""


class PatternError(ValueError):
    """A text is no regular expression."""


_given_up: Counter[str] = Counter()
_FUZZY = re.compile(r"(?<!\\)\{(?:\d+<=?)?[eids](?:<=?\d+)?(?:[,:][^{}]*)?\}")  # which `re` takes for text


def require_pattern(pattern: str) -> None:
    """Refuse what is no regular expression, or means another thing to the library. Raises PatternError."""
    try:
        regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        raise PatternError(f"pattern: {pattern!r} is no regular expression: {error}") from error
    if found := _FUZZY.search(pattern):
        raise PatternError(
            f"pattern: {pattern!r} has {found[0]}, which would match approximately: write its brace as \\{{"
        )


def last_match(pattern: str, text: str, *, ignore_case: bool = False, first: bool = False) -> Any:
    """Find the last match, or the first; None where there is none.

    Raises SuiteError where the text is not searched in time, PatternError where the pattern is none.
    """
    if _given_up[pattern] < MOST_GIVEN_UP:
        require_pattern(pattern)
        flags = regex.IGNORECASE if ignore_case else 0
        try:
            if first:
                return regex.search(pattern, text, flags, timeout=SECONDS)
            last = deque(regex.finditer(pattern, text, flags, timeout=SECONDS), maxlen=1)
            return last[0] if last else None
        except TimeoutError:
            _given_up[pattern] += 1
    raise SuiteError(
        f"the pattern {pattern!r} takes more than {SECONDS:g} s for one text: write it without repeats within repeats"
    )


def matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Tell whether a pattern is found in a text. Raises as `last_match`."""
    return last_match(pattern, text, ignore_case=ignore_case, first=True) is not None


# JSON schemas that replies are held against: nothing is fetched, and their patterns are searched in time.


def flaw_of(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Say why a value does not fit; None where it does.

    Raises SuiteError where the schema is none, or one of its patterns takes too long.
    """
    from jsonschema.exceptions import SchemaError, best_match
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = _schema_validator()
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise SuiteError(f"the expected value is no JSON schema: {error.message}") from error
    if all(f'"{name}"' in json.dumps(schema, default=str) for name in ("unevaluatedProperties", "patternProperties")):
        raise SuiteError("the expected JSON schema has unevaluatedProperties beside patternProperties: write neither")
    try:
        flaw = best_match(kind(schema, registry=Registry()).iter_errors(value))  # which fetches nothing
    except (Unresolvable, RecursionError) as error:
        raise SuiteError(f"the expected JSON schema refers to what is not in it: {error}") from error
    except PatternError as error:
        raise SuiteError(f"the expected JSON schema has a wrong pattern: {error}") from error
    return None if flaw is None else str(flaw.message)


@cache
def _schema_validator() -> Any:
    """Make a validator of draft 2020-12 whose keywords with patterns search them in time."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    further = Draft202012Validator.VALIDATORS["additionalProperties"]

    def pattern(validator: Any, given: str, value: Any, schema: Any) -> Iterator[Any]:
        if validator.is_type(value, "string") and not matches(given, value):
            yield ValidationError(f"{value!r} does not match {given!r}")

    def of_patterns(validator: Any, given: Mapping[str, Any], value: Any, schema: Any) -> Iterator[Any]:
        for each, wanted in given.items() if validator.is_type(value, "object") else ():
            for name in [name for name in value if matches(each, name)]:
                yield from validator.descend(value[name], wanted, path=name, schema_path=each)

    def beyond(validator: Any, given: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        patterns = schema.get("patternProperties", {})
        if patterns and validator.is_type(value, "object"):
            named = [name for name in value if any(matches(each, name) for each in patterns)]
            known = schema.get("properties", {}) | dict.fromkeys(named, True)
            schema = {**schema, "patternProperties": {}, "properties": known}
        yield from further(validator, given, value, schema)

    own = {"pattern": pattern, "patternProperties": of_patterns, "additionalProperties": beyond}
    return extend(Draft202012Validator, own)


# Jinja templates in a sandbox: nothing of Python is reached from them, and a missing column is an error.

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


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # without libyaml there is the slow one alone


def plain_yaml(text: str) -> Any:
    """Read YAML without aliases, which may stand for far more than is written. Raises yaml.YAMLError."""
    if "*" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_LOADER)):
        raise yaml.YAMLError("it has aliases")
    return yaml.load(text, Loader=_LOADER)


# The file: what TOML or YAML says, and the line of each field.

Lines = Mapping[tuple[str, ...], int]


def content(path: Path) -> tuple[Any, Lines]:
    """Read what the file says and the line of each field. Raises SuiteError where it is neither TOML nor YAML."""
    try:
        text = read_file(path, MEGABYTE).decode("utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text), dict(_lines_of_toml(text))
        lines: dict[tuple[str, ...], int] = {}
        for where, line in _lines_of_yaml(yaml.compose(text, Loader=yaml.SafeLoader), ()):
            if (other := lines.setdefault(where, line)) != line:
                raise SuiteError(f"{path}:{line}: {'.'.join(where)}: it stands in line {other}, too: keep one of them")
            if len(lines) > MOST_FIELDS:
                raise SuiteError(f"{path} has more than {MOST_FIELDS:,} fields: move its samples into a dataset")
        return yaml.safe_load(text), lines
    except FileRefusedError as error:
        raise SuiteError(f"{path} cannot be read: {error.reason}") from error
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path} is not UTF-8 text: save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        place = path if error.problem_mark is None else f"{path}:{error.problem_mark.line + 1}"
        raise SuiteError(f"{place}: no valid YAML: {error.problem}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())[:200]
        place = f"{path}:{found[1]}" if (found := re.search(r"\(at line (\d+)", said)) else path
        raise SuiteError(f"{place}: no valid {path.suffix[1:].upper()}: {said}") from error


MOST_FIELDS = 100_000  # of a YAML file: its aliases may stand for many more than are written
_SHORT = {"prompts": "prompt", "scorers": "score"}


def placed(path: Path, where: Sequence[str], lines: Lines | None = None) -> str:
    """Write a field of a file with its line, as mistakes are told; without `lines` the file is read for them."""
    lines = content(path)[1] if lines is None else lines
    place = f"{path}:{line}" if (line := line_of(where, lines)) else str(path)
    return f"{place}: {_written(where, lines)}" if where else place


def _written(where: Sequence[str], lines: Lines) -> str:
    """Write the name of a field as the file does, which may have a short form for it."""
    first, *others = where
    short = _SHORT.get(first)
    if short is None or (short,) not in lines:
        return ".".join(where)
    return ".".join((short, *others[0 if (short, *others[:1]) in lines else 1 :]))


def line_of(where: Sequence[str], lines: Lines) -> int | None:
    """Find the line of a field, or else of what holds it, under its long or its short name."""
    for end in range(len(where), 0, -1):
        first, *others = where[:end]
        short = _SHORT.get(first, first)
        paths: list[tuple[str, ...]] = [(first, *others), (short, *others), (short, *others[1:])]
        for path in paths:
            if line := lines.get(path):
                return line
    return None


_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def _lines_of_toml(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the line of each table and key. Lines of a text over several lines are none."""
    table: tuple[str, ...] = ()
    counts: Counter[tuple[str, ...]] = Counter()
    inside: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if inside is None:
            if header := _TABLE.match(line):
                table = _parts(header[2])
                if header[1] == "[[":
                    counts[table] += 1
                    yield table, number
                    table = (*table, str(counts[table] - 1))
                yield table, number
            elif key := _KEY.match(line):
                yield (*table, *_parts(key[1])), number
        for quotes in re.findall(r'"""|\'\'\'', line):
            inside = quotes if inside is None else None if inside == quotes else inside


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _lines_of_yaml(node: yaml.Node | None, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, str(key.value)), key.start_mark.line + 1
            yield from _lines_of_yaml(value, (*path, str(key.value)))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, str(index)), value.start_mark.line + 1
            yield from _lines_of_yaml(value, (*path, str(index)))
