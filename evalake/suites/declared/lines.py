"""The text of a suite's file: what TOML or YAML says, and the line of each field."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from evalake.core.errors import SuiteError
from evalake.core.files import MEGABYTE, FileRefusedError, read_file

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
