"""JSON schemas that replies are held against: nothing is fetched, and their patterns are searched within a time."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from evalake.core.errors import SuiteError
from evalake.suites.declared.patterns import PatternError, matches


def flaw_of(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Say why a value does not fit; None where it does.

    Raises SuiteError where the schema is none, or one of its patterns takes too long.
    """
    from jsonschema.exceptions import SchemaError, best_match
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = _validator()
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
def _validator() -> Any:
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
