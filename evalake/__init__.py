"""evalake from Python: open a lake, run a suite, read its tables as Polars frames.

import evalake

lake = evalake.open("./lake")
run = lake.run("SUITE", limit=50)
run.metrics()
lake.sql("select * from runs")
evalake.evaluate(my_function, samples, ["exact"])
lake.gate(run.run_id, ["balanced_accuracy >= 0.85"]).verdict
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalake.core.errors import (
        ConfigurationError,
        EvalakeError,
        InputError,
        LakeError,
        MetricError,
        MissingKeyError,
        ProviderError,
        QueryError,
        SourceError,
        SuiteError,
        UsageError,
    )  # fmt: skip
    from evalake.decisions.explain import Explanation
    from evalake.lake import Lake, evaluate
    from evalake.lake import open_lake as open
    from evalake.reports.gate import Gate
    from evalake.request import RunRequest
    from evalake.run import Run

ERRORS = (
    "ConfigurationError", "EvalakeError", "InputError", "LakeError", "MetricError", "MissingKeyError", "ProviderError",
    "QueryError", "SourceError", "SuiteError", "UsageError",
)  # fmt: skip
# Every command imports this package first, so the libraries behind these names are imported at their first use.
_MODULES = {
    **{name: ("evalake.core.errors", name) for name in ERRORS},
    "Explanation": ("evalake.decisions.explain", "Explanation"),
    "Gate": ("evalake.reports.gate", "Gate"),
    "Lake": ("evalake.lake", "Lake"),
    "Run": ("evalake.run", "Run"),
    "RunRequest": ("evalake.request", "RunRequest"),
    "evaluate": ("evalake.lake", "evaluate"),
    "open": ("evalake.lake", "open_lake"),
}

__all__ = [  # noqa: RUF022 - classes, then functions, then errors
    "Lake", "Run", "RunRequest", "Gate", "Explanation", "evaluate", "open",
    "ConfigurationError", "EvalakeError", "InputError", "LakeError", "MetricError", "MissingKeyError", "ProviderError",
    "QueryError", "SourceError", "SuiteError", "UsageError",
]  # fmt: skip


def __dir__() -> list[str]:
    """List the public names, for completion."""
    return __all__


def __getattr__(name: str) -> Any:
    """Import a public name at its first use. Raises AttributeError where the package has no such name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _MODULES[name]
    return getattr(import_module(module), attribute)
