"""A lake as Python sees it: runs are made and found in it, and its tables are frames.

`evaluate` makes a run with a function of one's own as the model, by the same way of a row and the same ledger.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, update_wrapper
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import polars as pl

from evalake.contracts.tables import RUNS
from evalake.core.configuration import lake_uri
from evalake.core.errors import UsageError
from evalake.decisions.compare import compare_sides
from evalake.decisions.explain import Explanation
from evalake.decisions.explain import explain as explain_difference
from evalake.decisions.gate import hold_gate
from evalake.decisions.sample_size import Plan, plan
from evalake.models.request import FUNCTION, Function
from evalake.reports.gate import Gate
from evalake.request import OPTIONS, RunRequest, checks_arguments
from evalake.run import Run, carry_out, titled
from evalake.storage import lake as tables
from evalake.storage.sql.query import query
from evalake.suites.registry import all_contracts, suite_names, with_function
from evalake.tasks.runtime.runs import no_run, of_suite, tagged, with_labels, with_state

if TYPE_CHECKING:
    from evalake.suites.declared.functions import Samples, ScorerLike

P = ParamSpec("P")
R = TypeVar("R")
N = TypeVar("N", bound=None)


def takes_options(
    request: Callable[P, RunRequest],
) -> Callable[[Callable[["Lake", RunRequest], R]], Callable[Concatenate["Lake", P], R]]:
    """Give a method of a lake the options of a run, typed as they are declared; it gets them as one request."""

    def decorate(method: Callable[["Lake", RunRequest], R]) -> Callable[Concatenate["Lake", P], R]:
        def with_options(lake: "Lake", /, *args: P.args, **options: P.kwargs) -> R:
            return method(lake, partial(request, lake=lake.tables.address)(*args, **options))  # type: ignore[arg-type]

        own = signature(method)
        options = signature(request).parameters.values()
        plain = [each.replace(annotation=OPTIONS[each.name].field.annotation) for each in options]
        update_wrapper(with_options, method)
        with_options.__signature__ = own.replace(parameters=[own.parameters["self"], *plain])  # type: ignore[attr-defined]
        return with_options

    return decorate


@dataclass(frozen=True, repr=False)
class Lake:
    """A lake of runs. What is read is as it is at that moment."""

    tables: tables.Lake

    @property
    def uri(self) -> str:
        """Where it is."""
        return self.tables.uri

    @takes_options(RunRequest)
    def run(self, request: RunRequest) -> Run:
        """Evaluate models on a suite: only what the ledger does not know yet is asked.

        The options are those of `evalake.RunRequest` and of `evalake run`. A run that could not ask everything is
        returned, too: its `state` is incomplete, and its `message` says why.

        Raises:
            EvalakeError: What is asked for cannot be, or the run failed.
        """
        if self.tables.storage_options:
            raise UsageError(f"a run in {self.uri} reads no storage_options: set them in the environment")
        if tables.Lake(request.lake).address != self.tables.address:
            raise UsageError(f"a run of this lake lands in {self.uri}: open {request.lake} for another")
        return self.find(carry_out(request))

    @checks_arguments
    def runs(self, suite: str | None = None, *, tag: str | None = None) -> pl.DataFrame:
        """List the runs, newest first, with their tags and notes; those of one suite, or with a tag, where named.

        Raises UsageError for a suite that is neither known nor in the lake.
        """
        rows = with_labels(with_state(self.tables, self.tables.frame(RUNS)))
        rows = rows.filter(suite=suite) if suite in suite_names() else of_suite(rows, suite)
        return tagged(rows, tag).sort("started_at", descending=True).collect()

    @checks_arguments
    def find(self, run_id: str | None = None, *, suite: str | None = None, tag: str | None = None) -> Run:
        """Find a run: that of this id, or the newest (of a suite, with a tag). Raises UsageError for none."""
        rows = self.runs(suite, tag=tag)
        if run_id is not None and (rows := rows.filter(run_id=run_id)).is_empty():
            raise no_run(self.tables, run_id)
        if rows.is_empty():
            what = " ".join([f"of {suite}"] * bool(suite) + [f"tagged {tag}"] * bool(tag)) or "yet"
            raise UsageError(f"the lake {self.uri} has no run {what}: `runs()` has those there are")
        return Run(self.tables, rows.row(0, named=True))

    @checks_arguments
    def compare(
        self,
        a: str | Run,
        b: str | Run,
        *,
        metric: str | None = None,
        run: str | Run | None = None,
        tag: str | None = None,
        force: bool = False,
        corrected: bool = False,
    ) -> pl.DataFrame:
        """Compute how A differs from B in every metric, paired by unit, as `evalake compare` does.

        Args:
            a: A model, a run, a snapshot, RUN:MODEL or RUN:MODEL:PROMPT_TYPE.
            b: What A is compared with, named alike.
            metric: Only this metric, in all of its slices.
            run: The run that models are of; without it the newest.
            tag: Without `run`, the newest with this tag.
            force: Compare what is refused.
            corrected: Correct rates by people's labels, or by the judge's calibration.
        """
        found = compare_sides(
            self.tables, _id(a), _id(b), run_id=_id(run), tag=tag, metric=metric, force=force, corrected=corrected
        )
        return found.rows

    @checks_arguments
    def gate(
        self,
        run: str | Run,
        rules: str | Sequence[str],
        *,
        baseline: str | Run | None = None,
        force: bool = False,
        adjust: bool = False,
        corrected: bool = False,
    ) -> Gate:
        """Hold a run against rules, as `evalake gate` does; the gate has `verdict`, `checks` and `notes`.

        Args:
            run: A run, a snapshot, or RUN:MODEL.
            rules: One or several, like "accuracy >= 0.8" or "no significant drop in accuracy".
            baseline: What rules about changes compare with, named alike.
            force: Compare with a baseline that does not mean the same.
            adjust: Hold all level rules together to the error of one.
            corrected: Correct rates by people's labels, or by the judge's calibration.
        """
        held = [rules] if isinstance(rules, str) else rules
        against = _id(baseline)
        return hold_gate(self.tables, _id(run), held, baseline=against, force=force, adjust=adjust, corrected=corrected)

    @checks_arguments
    def explain(
        self, a: str | Run, b: str | Run, *, metric: str | None = None, run: str | Run | None = None
    ) -> Explanation:
        """Split A - B into samples, replies, judge, code and repeats; `parts` and `rows` are frames.

        Args:
            a: A run, a snapshot, RUN:MODEL, or a model of the run.
            b: What A is compared with, named alike.
            metric: The metric; without it the one that ranks.
            run: The run that models are of; without it the newest.
        """
        return explain_difference(self.tables, _id(a), _id(b), run_id=_id(run), metric=metric)

    @checks_arguments
    def power(self, suite: str, detect: float, *, metric: str | None = None, power: float = 0.8) -> Plan:
        """Plan how many samples show a difference; `rows` is a frame. Raises UnknownVarianceError without a run.

        Args:
            suite: The suite.
            detect: The difference of two models to find.
            metric: The metric; without it the one that ranks.
            power: The chance to find it.
        """
        return plan(self.tables, suite, detect, metric=metric, power=power)

    @checks_arguments
    def sql(self, query_text: str, *, at: Mapping[str, int] | None = None) -> pl.DataFrame:
        """Ask the tables and views a question in DuckDB's SQL; `at` reads tables as they were at a version."""
        return query(self.tables, all_contracts(self.tables), query_text, versions=dict(at or {}))

    def __repr__(self) -> str:
        return f"<Lake {self.uri}>"

    def _repr_html_(self) -> str:
        """Show the runs in a notebook."""
        columns = ("run_id", "suite", "state", "started_at", "samples", "models", "cost_usd", "message")
        return titled(f"Lake {self.uri}", self.runs().select(columns))


def _id(side: str | Run | N) -> str | N:
    return side.run_id if isinstance(side, Run) else side


@checks_arguments
def open_lake(uri: str | os.PathLike[str] | None = None, storage_options: Mapping[str, str] | None = None) -> Lake:
    """Open a lake; one that is not there yet is made by its first run.

    Args:
        uri: A folder, or a URI that Delta supports; without it EVALAKE_LAKE, or ./lake.
        storage_options: Those of the object store, for reading; runs take them from the environment.
    """
    where = lake_uri(None) if uri is None else os.fspath(uri)
    return Lake(tables.Lake(where, dict(storage_options or {})))


def evaluate(
    function: Callable[[str], str],
    samples: "Samples",
    scorers: "ScorerLike | Sequence[ScorerLike]",
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
    from evalake.suites.declared.functions import write_suite
    from evalake.tasks.runtime.runner import DASK, RUNNER

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
    from evalake.suites.declared.functions import source_hash_of

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
