"""promptfoo's assertions as scorers: the deterministic ones, the plainest JavaScript, Python in files, llm-rubric."""

import csv
import re
from collections.abc import Mapping
from typing import Any

from evalake.core.files import tables_beside
from evalake.sdk.sources import as_text
from evalake.suites.declared.texts import PatternError, plain_yaml, require_pattern

TABLES = tables_beside(__file__, "promptfoo.toml")
"""What is known of promptfoo's files: names of fields, providers and assertions."""

_TYPES = "|".join(TABLES["assertions"]["types"])
_IN_A_CELL = re.compile(
    rf"(?P<type>(?:not-)?(?:{_TYPES}))(?:\((?P<threshold>\d+(?:\.\d+)?)\))?(?::\s*(?P<value>.*))?", re.DOTALL
)
_CODE = {name: re.compile(text) for name, text in TABLES["code"].items()}
_ABOVE_NOTHING = 1e-6  # a Python function's number is right from here: promptfoo asks for more than 0


def of_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read a test of a table's row."""
    cells = {name.strip(): value for name, value in row.items()}
    given = {name: value for name, value in cells.items() if not name.startswith("__")}
    said = {name: str(value).strip() for name, value in cells.items() if name not in given and value is not None}
    said = {name: value for name, value in said.items() if value}
    metric = {"metric": name} if (name := said.pop("__metric", "")) else {}
    test: dict[str, Any] = {"vars": given, "assert": [], "metadata": {}}
    for name, value in said.items():
        if name.startswith("__expected"):
            test["assert"].append({**_of_cell(value), **metric})
        elif name.startswith("__metadata:"):
            test["metadata"][name.partition(":")[2]] = value
        else:
            test[name.removeprefix("__")] = float(value) if name == "__threshold" else value
    return test


def _of_cell(cell: str) -> dict[str, Any]:
    """Read an assertion of a table: `type`, `type: value`, `type(threshold): value`, or the text that is expected."""
    for old, new in TABLES["assertions"]["formerly"].items():
        cell = new + cell.removeprefix(old) if cell.startswith(old) else cell
    if cell.startswith("file://"):
        return {"type": "python" if ".py" in cell else "javascript", "value": cell}
    found = _IN_A_CELL.fullmatch(cell)
    if found is None:
        return {"type": "equals", "value": cell}
    least = found["threshold"] or ("0.75" if found["type"] == "levenshtein" else None)
    return {"type": found["type"], "value": found["value"], **({"threshold": float(least)} if least else {})}


def as_scorer(kind: str, value: Any, assertion: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Give the scorer of an assertion and what it expects. Raises KeyError where there is none.

    Raises ValueError, TypeError or YAMLError where `value` is none of its kind.
    """
    text = _as_javascript(value)
    if value is None and kind not in TABLES["assertions"]["of_nothing"]:
        raise KeyError(kind)
    if found := re.fullmatch(r"(i?)contains(-any|-all)?", kind):
        texts = [*map(_as_javascript, value)] if isinstance(value, list) else [text]
        if found[2] and isinstance(value, str):
            cells = next(csv.reader([text], skipinitialspace=True), [])
            texts = [cell.strip() for cell in cells if cell.strip()]
        if not texts or (not found[2] and texts == [""]):
            raise KeyError(kind)
        folded = {"ignore_case": True} if found[1] else {}
        return {"kind": "includes_all" if found[2] == "-all" else "includes", **folded}, texts
    if kind == "equals":
        return {"kind": "equals"}, [value] if isinstance(value, dict | list) else text
    if kind == "starts-with" and text:
        return {"kind": "starts_with"}, text
    if kind in ("regex", "ends-with", "word-count") and text:
        made = {"ends-with": lambda: rf"{re.escape(text)}\Z", "word-count": lambda: _words(value)}
        return {"kind": "regex"}, made.get(kind, lambda: _python_pattern(text))()
    if kind in ("is-json", "contains-json"):
        schema = plain_yaml(value) if isinstance(value, str) else value
        return {"kind": "is_json" if kind == "is-json" else "has_json"}, True if schema is None else dict(schema)
    if kind == "levenshtein":
        return {"kind": "distance", "within": int(assertion.get("threshold", 5))}, text
    if kind == "python" and text.startswith("file://"):
        name, _, function = text.removeprefix("file://").removeprefix("./").partition(":")
        threshold = max(float(assertion.get("threshold", _ABOVE_NOTHING)), _ABOVE_NOTHING)
        return {"kind": "python", "function": f"{name}:{function or 'get_assert'}", "threshold": threshold}, True
    if kind == "javascript":
        return _javascript(text)
    if kind == "llm-rubric":
        if "threshold" not in assertion:
            return {"kind": "judge", "form": {"reason": "text", "pass": "yes/no"}}, text
        least = float(assertion["threshold"])
        return {"kind": "judge", "form": {"reason": "text", "score": "0.0..1.0"}, "threshold": least}, text
    raise KeyError(kind)


def _as_javascript(value: Any) -> str:
    """Write a value as JavaScript's String() does."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "null" if value is None else as_text(value) or ""


def _words(value: Any) -> str:
    """Write the pattern of a text with so many words, or from `min` to `max` of them."""
    bounds = value if isinstance(value, Mapping) else {"min": value, "max": value}
    low, high = int(bounds.get("min", 0)), "" if "max" not in bounds else int(bounds["max"])
    return rf"\A\s*(?:\S+(?:\s+|\Z)){{{low},{high}}}\Z"


def _python_pattern(pattern: str) -> str:
    """Write a regular expression of JavaScript for Python: `$` is the very end, classes are of ASCII."""
    if odd := re.search(r"\(\?(?![:=!<])|\\[AZ]", pattern):
        raise PatternError(f"JavaScript has no {odd[0]}")
    named = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)
    parts = re.findall(r"\\.|\[(?:\\.|[^\]\\])*\]|.", named, re.DOTALL)
    written = "(?a)" + "".join("\\Z" if part == "$" else part for part in parts)
    require_pattern(written)
    return written


def _javascript(code: str) -> tuple[dict[str, Any], Any]:
    """Give the scorer of the plainest JavaScript: a length, a text in it, its beginning, or the whole text."""
    body = code.strip().removesuffix(";").rstrip()
    body = body.removeprefix("return ") if "\n" in code else body  # a line is an expression, lines are a body
    if found := _CODE["length"].fullmatch(body):
        size, strictly = int(found[2]), not found[1].endswith("=")
        low, high = (size + strictly, "") if found[1][0] == ">" else (0, size - strictly)
        if high != -1:
            return {"kind": "regex"}, rf"\A[\s\S]{{{low},{high}}}\Z"
    elif found := _CODE["is"].fullmatch(body):
        return {"kind": "equals"}, found[2]
    elif (found := _CODE["has"].fullmatch(body)) and (not found[2] or (found[3] == "includes" and found[5].islower())):
        negated, folded = {"negate": True} if found[1] else {}, {"ignore_case": True} if found[2] else {}
        return {"kind": "includes" if found[3] == "includes" else "starts_with", **folded, **negated}, found[5]
    raise KeyError(code)
