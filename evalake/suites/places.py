"""Where suites are, and the manifest (`suite.toml`) of each; no suite is imported for it.

A suite is a folder with a `suite.py` that holds a SUITE, in suites/ or in a folder that the user's configuration lists,
or an entry point of the group `evalake.suites`.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from evalake.core.configuration import suite_paths, users_file
from evalake.core.errors import ConfigurationError, SuiteError
from evalake.core.files import make_folder, write_file
from evalake.core.hashing import content_hash

ENTRY_POINTS = "evalake.suites"
FOLDER = Path(__file__).resolve().parent

_FILE, _MANIFEST = "suite.py", "suite.toml"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a suite is: the module that holds it, and under which name."""

    name: str
    description: str  # the place in words
    module: str
    attribute: str = "SUITE"
    folder: Path | None = None  # to import it from, where that is not on Python's path


class Manifest(BaseModel):
    """What a `suite.toml` says of its suite; a test checks that those in suites/ match the suites."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    asks: str = ""
    prompt_types: tuple[str, ...] = ()  # that come with it
    models: tuple[str, ...] = ()  # rule-based ones
    judges: tuple[str, ...] = ()  # rule-based ones
    examples: tuple[str, ...] = ()  # arguments of `evalake run` after the suite's name


def places() -> dict[str, Place]:
    """Find every suite's place, by its name. Raises ConfigurationError where two suites have one name."""
    by_name: dict[str, Place] = {}
    found = (*_in_folder(FOLDER), *_installed(), *(each for path in suite_paths() for each in _in_folder(path)))
    for place in (*found, *_imported()):
        if other := by_name.get(place.name):
            raise ConfigurationError(
                f"two suites are called {place.name}: rename {other.description} or {place.description}"
            )
        by_name[place.name] = place
    return by_name


def manifest(place: Place) -> Manifest:
    """Read the manifest of a suite, empty where it has none. Raises SuiteError where its `suite.toml` is wrong."""
    file = None if place.folder is None else place.folder / _MANIFEST
    if file is None or not file.is_file():
        return Manifest()
    try:
        return Manifest.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise SuiteError(f"{file}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (OSError, ValueError) as error:
        raise SuiteError(f"{file} cannot be read: {error}") from error


def _in_folder(folder: Path) -> Iterator[Place]:
    for file in sorted(folder.glob(f"*/{_FILE}")):
        name = file.parent.name
        package = "evalake.suites" if folder == FOLDER else f"evalake_suites_{content_hash([str(folder)])[:12]}"
        yield Place(name, str(file), f"{package}.{name}.suite", folder=file.parent)


# Suites of imported results: the user's own folder remembers their names.

IMPORTED = "evalake.suites.declared.imported"


def remember_imported(name: str) -> None:
    """Remember the name of a suite of imported results. Raises ConfigurationError where it cannot be written."""
    try:
        write_file(make_folder(_imported_folder()) / f"{name}.imported", "")
    except OSError as error:
        raise ConfigurationError(f"cannot write into {_imported_folder()}: {error.strerror}") from error


def _imported() -> Iterator[Place]:
    for file in sorted(_imported_folder().glob("*.imported")):
        yield Place(file.stem, f"the imported results that {file} names", IMPORTED)


def _imported_folder() -> Path:
    return users_file().parent / "suites"


@cache
def _installed() -> tuple[Place, ...]:
    return tuple(
        Place(entry.name, f"the package {entry.module}", entry.module, entry.attr or "SUITE")
        for entry in entry_points(group=ENTRY_POINTS)
    )
