"""Which suites there are: in suites/, of installed packages, and in folders that the user's configuration lists.

A suite is a folder with a `suite.py` that holds a SUITE, or an entry point of the group `evalake.suites`. It is
imported when it is asked for.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from contracts.contract import Contract
from contracts.tables import CORE_CONTRACTS
from core.errors import ConfigurationError, EvalakeError, SuiteError, UsageError
from core.hashing import content_hash
from core.suite_paths import suite_paths
from providers.baselines import Baseline
from suites.base import Suite

ENTRY_POINTS = "evalake.suites"

_FOLDER = Path(__file__).resolve().parent
_FILE = "suite.py"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a suite is: the module that holds it, and under which name."""

    name: str
    description: str  # the place in words
    module: str
    attribute: str = "SUITE"
    folder: Path | None = None  # to import it from, where that is not on Python's path


def suite_names() -> tuple[str, ...]:
    """The names of all suites, sorted; none is imported for it."""
    return tuple(sorted(_places()))


def suite(name: str) -> Suite:
    """The suite of this name.

    Raises UsageError where there is none, naming those there are, and SuiteError where its code cannot be used.
    """
    places = _places()
    if name not in places:
        raise UsageError(f"there is no suite {name!r}: choose one of {', '.join(sorted(places))}")
    return _load(places[name])


def suite_folders() -> Mapping[str, Path]:
    """The folders of the suites that are found by their folder, by name."""
    return {name: place.folder for name, place in sorted(_places().items()) if place.folder is not None}


def baselines() -> Mapping[str, Baseline]:
    """The rule-based models of all suites, by name."""
    return {baseline: function for name in suite_names() for baseline, function in suite(name).baselines.items()}


def all_contracts() -> tuple[Contract, ...]:
    """The contracts of every table: those that all suites share, then each suite's own.

    Raises SuiteError where two suites have a table of one name.
    """
    own = [contract for name in suite_names() for contract in suite(name).contracts]
    contracts = (*CORE_CONTRACTS, *own)
    if twice := [table for table, times in Counter(contract.table for contract in contracts).items() if times > 1]:
        raise SuiteError(f"there are two tables {twice[0]}: name those of a suite after the suite")
    return contracts


def _places() -> dict[str, _Place]:
    places: dict[str, _Place] = {}
    for place in (*_in_folder(_FOLDER), *_installed(), *(each for path in suite_paths() for each in _in_folder(path))):
        if other := places.get(place.name):
            raise ConfigurationError(
                f"two suites are called {place.name}: rename {other.description} or {place.description}"
            )

        places[place.name] = place
    return places


def _in_folder(folder: Path) -> Iterator[_Place]:
    for file in sorted(folder.glob(f"*/{_FILE}")):
        name = file.parent.name
        package = "suites" if folder == _FOLDER else f"evalake_suites_{content_hash([str(folder)])[:12]}"
        yield _Place(name, str(file), f"{package}.{name}.suite", folder=file.parent)


@cache
def _installed() -> tuple[_Place, ...]:
    return tuple(map(_of_package, entry_points(group=ENTRY_POINTS)))


def _of_package(entry: EntryPoint) -> _Place:
    return _Place(entry.name, f"the package {entry.module}", entry.module, entry.attr or "SUITE")


def _load(place: _Place) -> Suite:
    """Import a suite. A folder outside Python's path is a package of its own, so that its modules import each other."""
    package = place.module.rpartition(".")[0]
    if place.folder is not None and place.folder.parent != _FOLDER:
        for name, folder in ((package.rpartition(".")[0], place.folder.parent), (package, place.folder)):
            if name not in sys.modules:
                sys.modules[name] = ModuleType(name)
                sys.modules[name].__path__ = [str(folder)]
    try:
        loaded = getattr(import_module(place.module), place.attribute, None)
    except EvalakeError as error:
        raise SuiteError(f"the suite {place.name} in {place.description} cannot be used: {error}") from error
    except Exception as error:
        raise SuiteError(
            f"the suite {place.name} in {place.description} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(loaded, Suite) or loaded.name != place.name:
        raise SuiteError(f"{place.description} must hold a {place.attribute}, a suites.base.Suite named {place.name!r}")
    return loaded
