"""The suites: each is imported when it is asked for, from where `evalake.suites.places` finds it.

Results of other tools have no code, and those of a suite's file outlive it: a `lake`'s own tables say what they hold.
"""

import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TypeVar

from polars import col, scan_delta
from polars.exceptions import PolarsError

from evalake.contracts.contract import Contract
from evalake.contracts.tables import CORE_CONTRACTS
from evalake.contracts.tables.runs import RUNS
from evalake.core.errors import EvalakeError, LakeError, SuiteError, UsageError, did_you_mean
from evalake.core.files import Files
from evalake.core.hashing import content_hash
from evalake.models.request import Baseline, Reply
from evalake.sdk import Exchange, Item, Sample, Suite
from evalake.storage import secret
from evalake.storage.lake import Lake
from evalake.storage.objects import tables_there
from evalake.suites.places import FOLDER, Manifest, Place, manifest, places

T = TypeVar("T")

logger = logging.getLogger("evalake.suites")
_OF_A_SUITE = (".py", ".md", ".txt", ".jinja", ".jsonl", ".json", ".csv")  # files that a suite's file may name
_told: set[str] = set()  # broken suites that this process has named


def suite_names(lake: Lake | None = None) -> tuple[str, ...]:
    """List the names of all suites, sorted, with those whose results alone are in the lake; none is imported for it."""
    return tuple(sorted({*places(), *_without_code(lake)}))


def suite(name: str, lake: Lake | None = None) -> Suite:
    """Load the suite of this name, from its code, from the file that declares it, or from its results in the lake.

    Raises UsageError where there is none, naming the known ones, and SuiteError where its code cannot be used.
    """
    known = places()
    if name not in known:
        if (found := _without_code(lake).get(name)) is not None:
            return found
        choose = did_you_mean(name, known) or f": choose one of {', '.join(sorted(known))}"
        raise UsageError(f"there is no suite {name!r}{choose}")
    return _load(known[name])


def manifest_of(name: str) -> Manifest:
    """Read what a suite says of itself; only one that says nothing is imported for it. A broken one offers nothing."""
    try:
        told = manifest(places()[name])
        if told != Manifest():
            return told
        loaded = suite(name)
    except SuiteError:
        return Manifest(starter=())  # its run says why
    asks = loaded.conversation
    return Manifest(
        prompt_types=tuple(loaded.prompts.types),
        models=asks.default_models if asks.asks_subject else (),
        judges=asks.default_judges,
        starter=loaded.data.starter,
    )


def suite_of_task(task: str) -> Suite:
    """Make the suite of imported results of a task. Raises UsageError where its name is another suite's."""
    from evalake.suites.declared.imported import imported_suite, suite_name

    name = suite_name(task)
    if (known := places().get(name)) is not None:
        raise UsageError(f"the task {task} has the name of another suite, {known.description}: name one with --suite")
    return imported_suite(name)


def suite_folders() -> Mapping[str, Path]:
    """Find the folders of the suites that are found by their folder, by name."""
    return {name: place.folder for name, place in sorted(places().items()) if place.folder is not None}


def source_hash(name: str) -> str | None:
    """Hash the code of a user's suite; None for suites that ship, are installed, or whose version has their code."""
    place = places().get(name)
    if place is None or place.file is not None or place.folder is None or place.folder.parent == FOLDER:
        return None
    files = sorted(place.folder.rglob("*.py"))
    return content_hash([[str(file.relative_to(place.folder)), file.read_bytes().hex()] for file in files])[:12]


def baselines() -> Mapping[str, Baseline]:
    """Collect the rule-based models of all suites, by name. Raises SuiteError where two suites have one of one name."""
    of_suites: dict[str, Baseline] = {}
    owners: dict[str, str] = {}
    for each in _of_code(_load):
        for name, rules in each.conversation.baselines.items():
            if of_suites.setdefault(name, rules) is not rules:
                raise SuiteError(f"the suites {owners[name]} and {each.name} have each a baseline {name}: rename one")
            owners.setdefault(name, each.name)
    return {**of_suites, **_FUNCTIONS.get()}


# The functions of this process that are models while their run lasts, by the models' names.
_FUNCTIONS: ContextVar[Mapping[str, Baseline]] = ContextVar("functions", default=MappingProxyType({}))


@contextmanager
def with_function(model: str, function: Baseline) -> Iterator[None]:
    """Let `baselines` have a function in this block."""
    token = _FUNCTIONS.set({**_FUNCTIONS.get(), model: function})
    try:
        yield
    finally:
        _FUNCTIONS.reset(token)


def all_contracts(lake: Lake | None = None) -> tuple[Contract, ...]:
    """List the contracts of every table: those that all suites share, then each suite's own.

    Raises SuiteError where two suites have a table of one name.
    """
    own = (*(each.contracts for each in _without_code(lake).values()), *_of_code(_contracts))
    contracts = (*CORE_CONTRACTS, *chain.from_iterable(own))
    if twice := [table for table, times in Counter(contract.table for contract in contracts).items() if times > 1]:
        raise SuiteError(f"there are two tables {twice[0]}: name those of a suite after the suite")
    return contracts


def usable_suites(lake: Lake | None = None) -> Iterator[Suite]:
    """Yield every suite that can be used; one that is broken is named once, and the others are there without it."""
    yield from _without_code(lake).values()
    yield from _of_code(_load)


def _of_code(read: Callable[[Place], T]) -> Iterator[T]:
    for _, place in sorted(places().items()):
        try:
            yield read(place)
        except SuiteError as error:
            if str(error) not in _told:
                _told.add(str(error))
                logger.warning("left out: %s", error)


def _contracts(place: Place) -> tuple[Contract, ...]:
    """Read the contracts of a suite; a suite that ships has them in a module, so that the rest is not imported."""
    if place.file is None and place.folder is not None and place.folder.parent == FOLDER:
        contracts: tuple[Contract, ...] = import_module(f"{place.module.rpartition('.')[0]}.contract").CONTRACTS
        return contracts
    return _load(place).contracts


def _load(place: Place) -> Suite:
    """Load a suite, from its file as it is now, or from its code, once."""
    if place.file is None:
        return _import(place)
    beside = sorted(file for file in place.file.parent.iterdir() if file == place.file or file.suffix in _OF_A_SUITE)
    return _declared(place, tuple((file.name, *_state(file)) for file in beside))


def _state(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=256)
def _declared(place: Place, files: tuple[tuple[str, int, int], ...]) -> Suite:
    """Make the suite of a file; `files` are those beside it as they are now: changed ones make it again."""
    from evalake.suites.declared.make import load

    assert place.file is not None
    return load(place.file)


def _import(place: Place) -> Suite:
    """Import a suite. A folder outside Python's path is a package of its own, so that its modules import each other."""
    package = place.module.rpartition(".")[0]
    if place.folder is not None and place.folder.parent != FOLDER:
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
        raise SuiteError(
            f"{place.description} must hold a {place.attribute}, an evalake.sdk.Suite named {place.name!r}"
        )
    return loaded


# Suites whose code is not here: imported results, and those of a file that another user or machine has.


def _without_code(lake: Lake | None) -> dict[str, Suite]:
    """Find the suites that the lake has results of and no code is known of."""
    if lake is None:
        return {}
    strange = sorted(_suites_in(lake) - places().keys())
    return {name: found for name in strange if (found := _by_its_table(lake, name)) is not None}


def _suites_in(lake: Lake) -> frozenset[str]:
    """List the suites of the lake's runs; none of a table that cannot be read: its reader says why."""
    try:
        table = lake.find(RUNS.table)
        return (
            frozenset()
            if table is None
            else frozenset(scan_delta(table).select(col("suite").unique()).collect()["suite"])
        )
    except (LakeError, OSError, PolarsError) as error:
        logger.debug("%s", error)
        return frozenset()


def _by_its_table(lake: Lake, name: str) -> Suite | None:
    """Make the suite whose rows a table has, by its columns; None where they are those of a suite in Python."""
    from evalake.suites.declared.imported import imported_suite, suite_without_file

    table = lake.find(f"{name}_results")
    columns = set() if table is None else {each.name for each in table.schema().fields}
    if {"value", "explanation", "target"} <= columns:
        return imported_suite(name)
    return suite_without_file(name, "judge" in columns) if {"scores", "passed", "reasons"} <= columns else None


def undeclared_tables(lake: Lake) -> tuple[str, ...]:
    """List the lake's tables that no suite here declares, sorted. Nobody here can check, maintain or read them."""
    declared = {name for each in all_contracts(lake) for name in (each.table, *each.former_tables)}
    return tuple(sorted(tables_there(lake, besides={*declared, secret.FOLDER})))


def because_undeclared(tables: Collection[str]) -> str:
    """Name these tables, and say why nothing is done with them."""
    return f"{', '.join(tables)}, because no suite here declares {'it' if len(tables) == 1 else 'them'}"


# Frozen items: samples with the answers that subjects gave, kept for ever, so that nothing but a judge can change.


CANARY_FILE = "canary.jsonl"
SUBJECT = "canary"  # the items' model, which no judge is told


def canary_suites() -> tuple[str, ...]:
    """List the suites that have frozen items, sorted."""
    return tuple(name for name, folder in suite_folders().items() if (folder / CANARY_FILE).is_file())


def canary_items(suite: str, judge: str, replicate: int) -> list[tuple[Item, list[Exchange]]]:
    """Read the suite's frozen items for a judge, each with what was answered before the judge's turn.

    Raises UsageError where the suite has none.
    """
    if suite not in canary_suites():
        raise UsageError(f"{suite} has no frozen items to judge: choose one of {', '.join(canary_suites())}")
    folder = suite_folders()[suite]
    lines = [json.loads(line) for line in Files(folder).read(folder / CANARY_FILE).split(b"\n") if line.strip()]
    return [
        (
            Item(Sample(suite, **line["sample"]), SUBJECT, judge, line["prompt_type"], replicate),
            [Exchange(content_hash([answer]), Reply(answer), from_ledger=True) for answer in line["answers"]],
        )
        for line in lines
    ]
