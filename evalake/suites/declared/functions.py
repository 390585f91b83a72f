"""The suite that `evalake.evaluate` writes: a user's samples and scorers as files, which every later command finds."""

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, get_args

import polars as pl
import yaml

from evalake.core.errors import ConfigurationError, UsageError, did_you_mean
from evalake.core.files import make_folder, write_file
from evalake.core.hashing import NotCanonicalError, canonical_text, content_hash
from evalake.suites.declared.file import checked
from evalake.suites.declared.parts import Scorer
from evalake.suites.places import places, written_folder

ScorerLike = str | Mapping[str, Any] | Callable[..., Any]
Samples = Sequence[Mapping[str, Any]] | pl.DataFrame | str

KINDS: tuple[str, ...] = get_args(Scorer.model_fields["kind"].annotation)


def write_suite(name: str | None, samples: Samples, scorers: ScorerLike | Sequence[ScorerLike]) -> tuple[str, str]:
    """Write the suite of samples and scorers into the user's folder; returns its name and the source of its samples.

    Raises UsageError where a scorer is unknown or the name is another suite's, SuiteError for other mistakes.
    """
    for given, what in ((samples, "samples"), (scorers, "scorers")):
        if not isinstance(given, Iterable) and not callable(given):
            raise UsageError(f"the {what} must be a list, not {given!r:.80}")
    several = [scorers] if isinstance(scorers, str | Mapping) or callable(scorers) else list(scorers)
    declared, files = _declared(several)
    name = name or _name_of(declared, files)
    folder = written_folder() / name
    known = places().get(name)
    if known is not None and known.folder != folder:
        raise UsageError(f"the suite {name} is {known.description}: choose another name with suite=")
    if isinstance(samples, str):
        lines, source = None, samples if "://" in samples else str(Path.cwd() / samples)
    else:
        lines = _lines(samples)
        source = str(folder / content_hash(lines)[:12] / "samples.jsonl")
    said = {
        "name": name,
        "title": f"Functions, scored by {', '.join(each.get('name', each['kind']) for each in declared)}",
        "dataset": source,
        "columns": {"input": "input"},
        "prompt": "{{ input }}",
        "scorers": declared,
    }
    checked(said, Path("evalake.evaluate"), {})
    try:
        make_folder(folder)
        if lines is not None:
            make_folder(Path(source).parent)
            write_file(Path(source), lines)
        for file, code in files.items():
            write_file(folder / file, code)
        write_file(folder / "suite.yaml", yaml.safe_dump(said, allow_unicode=True, sort_keys=False))
    except OSError as error:
        raise ConfigurationError(f"cannot write into {folder}: {error.strerror}") from error
    return name, source


def _declared(scorers: Sequence[ScorerLike]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Write scorers as a suite's file declares them, and the files of those that are functions."""
    if not scorers:
        raise UsageError(f"there is no scorer: name one of {', '.join(KINDS)}, or give a function")
    declared: list[dict[str, Any]] = []
    files = {}
    for scorer in scorers:
        if callable(scorer):
            code, called = _code_of(scorer), scorer.__name__
            files[f"{called}.py"] = code
            declared.append({"kind": "python", "name": called.lower().strip("_"), "function": f"{called}.py:{called}"})
            continue
        given = {"kind": scorer} if isinstance(scorer, str) else dict(scorer)
        kind = str(given.get("kind"))
        if kind not in KINDS:
            choose = did_you_mean(kind, KINDS) or f": choose one of {', '.join(KINDS)}"
            raise UsageError(f"there is no scorer {kind!r}{choose}")
        if kind == "python":
            raise UsageError("give a scorer in Python as the function itself, in place of its file")
        declared.append(given)
    return declared, files


def _name_of(declared: Sequence[Mapping[str, Any]], files: Mapping[str, str]) -> str:
    """Name a suite after its scorers, so that functions with the same scorers compare."""
    named = "_".join(str(each.get("name", each["kind"])) for each in declared)
    plain = re.sub(r"[^a-z0-9]+", "_", named.lower())[:40].strip("_")
    return f"by_{plain}_{content_hash([repr(declared), files])[:6]}"


def _lines(samples: Sequence[Mapping[str, Any]] | pl.DataFrame) -> str:
    rows = samples.to_dicts() if isinstance(samples, pl.DataFrame) else list(samples)
    if not rows:
        raise UsageError("there is no sample: give at least one, like {'input': '1 + 1 =', 'target': '2'}")
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise UsageError(f"samples[{number}] is {row!r:.80}: give a dict, like {{'input': '…', 'target': '…'}}")
    try:
        return "".join(f"{json.dumps(dict(row), allow_nan=False, default=str)}\n" for row in rows)
    except ValueError as error:
        raise UsageError(f"the samples cannot be written as JSON: {error}") from error


# What a function rests on: its source, and the values that it reads from around it.


def source_hash_of(function: Callable[..., Any]) -> str | None:
    """Hash a function's source with its defaults and the plain values that it reads; None where this is not enough.

    It is not enough for a function without source, one bound to an object, or one that reads other objects of an
    enclosing function. Functions that it calls are no part of it.
    """
    source = _source(function)
    if source is None or not isinstance(function, FunctionType):
        return None
    around = {name: value for name, value in _globals(function) if _is_plain(value)}
    own = [function.__defaults__, function.__kwdefaults__, inspect.getclosurevars(function).nonlocals]
    return content_hash([source, own, around])[:12] if _is_plain(own) else None


def _source(function: Callable[..., Any]) -> str | None:
    """Read a function's source; None where there is none, or several functions have the same."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return None
    return source if source.count("lambda") < 2 or getattr(function, "__name__", "") != "<lambda>" else None


def _is_plain(value: Any) -> bool:
    """Tell whether a value is made of texts, numbers, lists and dicts alone."""
    try:
        canonical_text(value)
    except NotCanonicalError:
        return False
    return True


def _globals(function: FunctionType) -> Iterator[tuple[str, Any]]:
    around = function.__globals__
    return ((name, around[name]) for name in sorted(set(_names(function.__code__))) if name in around)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _code_of(function: Callable[..., Any]) -> str:
    """Write a scorer's source with the imports and plain values that it reads. Raises UsageError for others."""
    name, source = getattr(function, "__name__", type(function).__name__), _source(function)
    if not isinstance(function, FunctionType) or not source or not source.startswith("def "):
        raise UsageError(f"the scorer {name} has no source of its own: write it as a plain def in a file or a notebook")
    reads = function.__code__.co_freevars
    lines = ["from __future__ import annotations"]
    for read, value in _globals(function):
        module, named = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if isinstance(value, ModuleType):
            lines.append(f"import {value.__name__}" + (f" as {read}" if read != value.__name__ else ""))
        elif _is_plain(value):
            lines.append(f"{read} = {value!r}")
        elif module and named and module != function.__module__:
            lines.append(f"from {module} import {named} as {read}")
        elif value is not function:
            reads = (*reads, read)
    if reads:
        raise UsageError(
            f"the scorer {name} reads {reads[0]}, which a later rescore does not have: put it into the function, or "
            "into a module to import"
        )
    return "\n".join([*lines, source])
