"""What a metric is: a name, an estimator, the slices it is reported for; and the hash that tells definitions apart."""

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType
from typing import TypeAlias

import polars as pl

from contracts.errors import MetricError
from metrics.composite import Composite
from metrics.estimators import Count, Maximum, Mean, Quantile, Rate, Total

Estimator: TypeAlias = Rate | Count | Total | Mean | Quantile | Maximum | Composite


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric of a suite. `slices` are "all" and names of columns, one value of which is one slice."""

    name: str
    estimator: Estimator
    tier: int | None = None
    slices: tuple[str, ...] = ("all",)
    description: str = ""


def definition_hash(metrics: Sequence[Metric]) -> str:
    """SHA-256, in hexadecimal, of everything that decides the metrics' values.

    That is name, tier, slices, kind of estimator, expressions, parameters, and the code of functions together with the
    module-level functions and constants that they name; not descriptions, comments and docstrings. Equal in every
    process with one version of Polars, whose serialised expressions it covers. Raises MetricError for what has no
    stable text: a lambda, a closure, or Python code within an expression.
    """
    described = [
        {"name": m.name, "tier": m.tier, "slices": m.slices, "estimator": _describe(m.estimator, f"Metric {m.name}")}
        for m in metrics
    ]
    canonical = json.dumps(described, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def function_hash(function: Callable[..., object]) -> str:
    """SHA-256 of a function's code and of all that it names in its module, as `definition_hash` covers it."""
    described = _describe(function, "Further metrics")
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _describe(value: object, where: str) -> object:
    """The value as JSON that changes whenever its meaning does."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case pl.Expr():
            return _describe_expression(value, where)
        case FunctionType():
            return _describe_function(value, where)
        case partial():
            return [_describe(part, where) for part in (value.func, value.args, value.keywords)]
        case Mapping():
            return {str(key): _describe(item, where) for key, item in value.items()}
        case tuple() | list():
            return [_describe(item, where) for item in value]
        case _ if is_dataclass(value):
            described = {field.name: _describe(getattr(value, field.name), where) for field in fields(value)}
            call = type(value).__dict__.get("__call__")
            return [type(value).__name__, described, _describe(call, where)]
    raise MetricError(f"{where}: a {type(value).__name__} cannot be part of a metric's definition.")


def _describe_expression(expression: pl.Expr, where: str) -> object:
    text = expression.meta.serialize(format="json")
    if '"AnonymousFunction"' in text:
        raise MetricError(f"{where}: its expression calls Python code; use Polars expressions only.")
    return json.loads(text)


def _describe_function(function: FunctionType, where: str) -> object:
    """The function's syntax tree without docstrings, and the module-level functions and constants that it names."""
    if function.__name__ == "<lambda>" or function.__closure__:
        raise MetricError(f"{where}: use a named function without closure; give it parameters by functools.partial.")
    described: dict[str, object] = {}
    _collect_source(function, described, where)
    return described


def _collect_source(function: FunctionType, described: dict[str, object], where: str) -> None:
    key = f"{function.__module__}.{function.__qualname__}"
    if key in described:
        return
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        raise MetricError(f"{where}: the source of its function {key} cannot be read.") from error
    described[key] = ast.dump(_without_docstrings(tree))
    for name in sorted(_names(function.__code__)):
        used = function.__globals__.get(name)
        if isinstance(used, FunctionType):
            _collect_source(used, described, where)
        elif isinstance(used, bool | int | float | str | tuple):
            described[f"{function.__module__}.{name}"] = _describe(used, where)


def _names(code: CodeType) -> set[str]:
    nested = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*(_names(inner) for inner in nested))


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return tree
