"""`evalake.evaluate`: a function of one's own as the model, by the same way of a row and the same ledger."""

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from evalake.core.errors import UsageError
from evalake.lake import open_lake
from evalake.models.request import FUNCTION, Function
from evalake.request import RunRequest
from evalake.run import Run, carry_out
from evalake.suites.declared.functions import Samples, ScorerLike, source_hash_of, write_suite
from evalake.suites.registry import with_function

RUNNER, DASK = "EVALAKE_TASK_RUNNER", "dask"


def evaluate(
    function: Callable[[str], str],
    samples: Samples,
    scorers: ScorerLike | Sequence[ScorerLike],
    *,
    revision: str | None = None,
    suite: str | None = None,
    lake: str | os.PathLike[str] | None = None,
    threads: int = 1,
    **options: Any,
) -> Run:
    """Evaluate a function on samples: it maps a sample's input, a text, to the text of a reply.

    The ledger answers what the same function, under the same revision, was asked before. What the function raises is a
    failed call: its sample is missing. The samples and scorers are a declared suite, which every command finds later.

    Args:
        function: The function.
        samples: Dicts or a frame with `input`, `target` and other columns; or a source, as a declared suite takes it.
        scorers: Kinds of a declared suite's scorers, like "exact"; their tables as dicts; or functions of (answer,
            target, sample).
        revision: Names this version of the function. Without it, the hash of its source with the plain values that it
            reads: what it calls is no part of this.
        suite: The name of the suite; without it, one after the scorers.
        lake: The lake, as `evalake.open` takes it.
        threads: How many calls of the function run at once.
        options: Further options of `evalake.RunRequest`, like `limit`, `replicates` and `judges`.

    Raises:
        UsageError: There is no such scorer, the source is not enough for a revision, or batches run on Dask.
        EvalakeError: The run failed.
    """
    if os.environ.get(RUNNER) == DASK:
        raise UsageError(f"only this process can call the function: unset {RUNNER}, which sends batches to Dask")
    if not isinstance(threads, int) or threads < 1:
        raise UsageError(f"threads must be a number of at least 1, not {threads!r:.80}")
    if own := options.keys() & {"models", "datasets"}:
        raise UsageError(f"evaluate takes no {min(own)}: its function is the model, its samples are the dataset")
    for name, value in {"suite": suite, "revision": revision}.items():
        if not isinstance(value, str | None):
            raise UsageError(f"{name} must be a text, not {value!r:.80}")
    model = _model_of(function, revision)
    name, source = write_suite(suite, samples, scorers)
    opened = open_lake(lake)
    request = RunRequest(name, models=[model], datasets=[source], lake=opened.tables.address, **options)
    with ThreadPoolExecutor(threads, "evalake-function") as pool, with_function(model, Function(function, pool)):
        return opened.find(carry_out(request))


def _model_of(function: Callable[[str], str], revision: str | None) -> str:
    """Name a function as a model. Raises UsageError where its source does not tell its versions apart."""
    if not callable(function):
        raise UsageError(f"the model must be a function from text to text, not {function!r:.80}")
    called = getattr(function, "__name__", type(function).__name__)
    version = source_hash_of(function) if revision is None else revision
    if version is None:
        raise UsageError(f"the source of {called} does not tell its versions apart: give one with revision=")
    if not re.fullmatch(r"[0-9A-Za-z._+-]{1,60}", version):
        raise UsageError(f"revision must be 1 to 60 letters, digits and ._+-, not {version!r:.80}")
    plain = re.sub(r"\W+", "_", called, flags=re.ASCII).strip("_")[:60] or "function"
    return f"{FUNCTION}/{plain}@{version}"
