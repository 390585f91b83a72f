"""Which suites there are: every folder of suites/ with a suite.py that holds a SUITE, imported when it is asked for."""

from importlib import import_module
from pathlib import Path

from contracts.contract import Contract
from contracts.errors import UsageError
from contracts.human_labels import HUMAN_LABELS
from contracts.judge_epochs import JUDGE_CANARIES, JUDGE_EPOCHS
from contracts.tables import CORE_CONTRACTS
from suites.base import Suite

_FOLDER = Path(__file__).resolve().parent


def suite_names() -> tuple[str, ...]:
    """The names of all suites, sorted; none is imported for it."""
    return tuple(sorted(file.parent.name for file in _FOLDER.glob("*/suite.py")))


def suite(name: str) -> Suite:
    """The suite of this name. Raises UsageError, naming those there are."""
    if name not in suite_names():
        raise UsageError(f"there is no suite {name!r}: choose one of {', '.join(suite_names())}")
    found = import_module(f"suites.{name}.suite").SUITE
    if not isinstance(found, Suite) or found.name != name:
        raise TypeError(f"suites/{name}/suite.py must hold a SUITE, a suites.base.Suite named {name!r}")
    return found


def all_contracts() -> tuple[Contract, ...]:
    """The contracts of every table: those that all suites share, then each suite's own."""
    own = (contract for name in suite_names() for contract in suite(name).contracts)
    return (*CORE_CONTRACTS, HUMAN_LABELS, JUDGE_EPOCHS, JUDGE_CANARIES, *own)
