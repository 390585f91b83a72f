"""Where suites are, and what each says of itself; no suite is imported for it.

A suite is a folder with a `suite.py` that holds a SUITE, or with a `suite.toml` (or `.yaml`) alone that declares it: in
suites/, in a folder that the user's configuration lists, or as an entry point of the group `evalake.suites`. A single
file declares a suite, too, where the configuration lists it or a command was given its path. Beside a `suite.py`,
`suite.toml` is a manifest, and says what help tells of the suite.
"""

import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from evalake.core.configuration import SUITE_SUFFIXES, suite_paths, users_file
from evalake.core.errors import ConfigurationError, SuiteError
from evalake.core.hashing import content_hash

ENTRY_POINTS = "evalake.suites"
FOLDER = Path(__file__).resolve().parent

DECLARED = tuple(f"suite{suffix}" for suffix in SUITE_SUFFIXES)
"""The names of a file that declares a suite in its folder."""

FILES_VARIABLE = "EVALAKE_SUITE_FILES"
"""Names trusted files of suites that commands were given by path, for the processes that they start."""

_FILE, _MANIFEST = "suite.py", "suite.toml"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a suite is: the module that holds it, and under which name."""

    name: str
    description: str  # the place in words
    module: str
    attribute: str = "SUITE"
    folder: Path | None = None  # to import it from, where that is not on Python's path
    file: Path | None = None  # that declares it; None: it is code


class Manifest(BaseModel):
    """What a `suite.toml` says of its suite; a test checks that those in suites/ match the suites."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    asks: str = ""
    prompt_types: tuple[str, ...] = ()  # that come with it
    models: tuple[str, ...] = ()  # rule-based ones
    judges: tuple[str, ...] = ()  # rule-based ones
    starter: tuple[str, ...] = ("starter",)  # sources that come with it
    examples: tuple[str, ...] = ()  # arguments of `evalake run` after the suite's name


def places() -> dict[str, Place]:
    """Find every suite's place, by its name. Raises ConfigurationError where two suites have one name."""
    by_name: dict[str, Place] = {}
    own = (each for path in suite_paths() for each in (_in_folder(path) if path.is_dir() else _in_file(path)))
    given = (each for path in _given_files() for each in _in_file(path))
    for place in (*_in_folder(FOLDER), *_installed(), *own, *given):
        other = by_name.get(place.name)
        if other is not None and (place.file is None or other.file != place.file):
            raise ConfigurationError(
                f"two suites are called {place.name}: rename {other.description} or {place.description}"
            )
        by_name[place.name] = place
    return {place.name: place for place in _in_folder(written_folder())} | by_name


def manifest(place: Place) -> Manifest:
    """Read the manifest of a suite, empty where it has none. Raises SuiteError where its `suite.toml` is wrong."""
    if place.file is not None:
        return _told(place.file)
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


def _told(file: Path) -> Manifest:
    """Read what a declared suite says of itself; nothing where it is broken, which its run will say."""
    from evalake.suites.declared.file import read_suite_file

    try:
        read = read_suite_file(file)
        sources = read.sources
    except SuiteError:
        return Manifest(asks="its file has mistakes: `evalake suite check` names them")
    judges = read.full_names(read.judges)
    asks = read.asks or read.title
    return Manifest(
        asks=asks, prompt_types=tuple(read.prompts), models=read.default_models, judges=judges, starter=sources
    )


def _given_files() -> tuple[Path, ...]:
    return tuple(Path(name) for name in os.environ.get(FILES_VARIABLE, "").split(os.pathsep) if name)


def _in_file(file: Path) -> Iterator[Place]:
    """Find the suite that a file declares, under the name that it says, or else its own."""
    from evalake.suites.declared.file import said_name

    yield Place(said_name(file), str(file), "", folder=file.parent, file=file)


def _in_folder(folder: Path) -> Iterator[Place]:
    for name in DECLARED:
        for file in sorted(folder.glob(f"*/{name}")):
            if not (file.parent / _FILE).exists():
                yield from _in_file(file)
    for file in sorted(folder.glob(f"*/{_FILE}")):
        name = file.parent.name
        package = "evalake.suites" if folder == FOLDER else f"evalake_suites_{content_hash([str(folder)])[:12]}"
        yield Place(name, str(file), f"{package}.{name}.suite", folder=file.parent)


def written_folder() -> Path:
    """Find the folder of the suites that `evalake.evaluate` wrote, which take no other suite's name."""
    return users_file().parent / "suites"


@cache
def _installed() -> tuple[Place, ...]:
    return tuple(
        Place(entry.name, f"the package {entry.module}", entry.module, entry.attr or "SUITE")
        for entry in entry_points(group=ENTRY_POINTS)
    )
