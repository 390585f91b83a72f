"""One run as Python sees it: its samples, replies, results and metrics as frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from evalake.contracts.tables import CALLS, HUMAN_LABELS, RUN_ITEMS, SAMPLES
from evalake.core.errors import EvalakeError
from evalake.reports.tables import headline_first
from evalake.reports.wording import visible
from evalake.request import RunRequest, checks_arguments
from evalake.storage.lake import Lake
from evalake.storage.ledger import KEY, calls_of, replies
from evalake.storage.snapshots import find_snapshot, read_metrics
from evalake.suites.registry import suite as find_suite
from evalake.tasks.coverage import missing_shares
from evalake.tasks.measure import run_results
from evalake.tasks.runtime.runs import as_scored

if TYPE_CHECKING:
    from evalake.reports.svg import Picture


LINE_WIDTH = 100


@dataclass(frozen=True, repr=False)
class Run:
    """A run of a suite. Every method reads the lake as it is at that moment."""

    lake: Lake
    row: Mapping[str, Any]
    """Its row of the table `runs`, as it was when the run was found."""

    @property
    def run_id(self) -> str:
        """Its name."""
        return str(self.row["run_id"])

    @property
    def suite(self) -> str:
        """The suite that ran."""
        return str(self.row["suite"])

    @property
    def state(self) -> str:
        """How it stood: running, completed, incomplete, waiting (for batch jobs), suspended, failed or lost."""
        return str(self.row["state"])

    @property
    def message(self) -> str | None:
        """What a person should know about how it ended."""
        return None if self.row["message"] is None else str(self.row["message"])

    def samples(self) -> pl.DataFrame:
        """Read its samples, in the order of their datasets."""
        items = self._items().select("sample_hash", "dataset_version").unique()
        rows = self.lake.frame(SAMPLES).join(items, on=["sample_hash", "dataset_version"], how="semi")
        return rows.sort("dataset", "position").collect()

    def replies(self) -> pl.DataFrame:
        """Read the replies to its first calls and its judges' first calls, one row a call, with their requests."""
        rows = self.lake.frame(CALLS).join(calls_of(self._items()), on=KEY, how="semi")
        return replies(rows).sort("model", *KEY).collect()

    def results(self) -> pl.DataFrame:
        """Read its result rows: one for each sample, model and judge."""
        rows = run_results(self.lake, as_scored(self.lake, self.row), self.run_id, {})
        return rows.sort("model", "dataset", "sample_id", "replicate").collect()

    def metrics(self) -> pl.DataFrame:
        """Read the values of its newest snapshot, every metric in every slice, headline metrics first."""
        snapshot = find_snapshot(self.lake, run_id=self.run_id)
        values = read_metrics(self.lake, snapshot["snapshot_id"])
        return headline_first(values, find_suite(self.suite, self.lake).metrics.headline)

    def headline(self) -> pl.DataFrame:
        """Read the headline metrics over all samples, with their intervals and the share of missing items.

        `missing` is null where the evalake that made the run kept no coverage.
        """
        values = self.metrics().filter(slice="all")
        chosen = values.filter(values["metric"].is_in(find_suite(self.suite, self.lake).metrics.headline))
        shares = missing_shares(self.lake).filter(run_id=self.run_id).rename({"judge": "whose"}).collect()
        told = chosen.with_columns(whose=pl.col("judge").fill_null(""))
        told = told.join(shares, on=["model", "whose"], how="left", maintain_order="left")
        columns = ("metric", "model", "judge", "value", "ci_low", "ci_high", "n", "units", "missing", "reliable")
        return told.select(columns)

    def labels(self) -> pl.DataFrame:
        """Read what people said of its answers: rows of `human_labels`, one for each answer to a question."""
        keys = ["sample_hash", "model", "prompt_type", "replicate"]
        items = self._items().select(keys).unique()
        rows = self.lake.frame(HUMAN_LABELS).filter(suite=self.suite)
        return rows.join(items, on=keys, how="semi").sort(keys).collect()

    def show(self, sample: str, *, model: str | None = None) -> str:
        """Write one sample as `evalake show` prints it: input, truth, conversations and judgements, of a model or all.

        Args:
            sample: Its name, DATASET/NAME, or the beginning of its hash.
            model: Only this model's answers.
        """
        from evalake.cli.samples import hash_of, transcript
        from evalake.server.viewer.item import item_detail
        from evalake.server.viewer.items import Wanted
        from evalake.server.viewer.run_index import RunIndexes

        indexes = RunIndexes(self.lake)
        found = hash_of(indexes.of(self.run_id), sample)
        item = item_detail(indexes, self.run_id, found, Wanted(model=[] if model is None else [model]))
        answers = [answer for answer in item.answers if model in (None, answer.model)]
        return "\n".join(transcript(item, answers, LINE_WIDTH, full=True))

    @checks_arguments
    def report(self, folder: str | Path = "evalake-reports", *, corrected: bool = False) -> Path:
        """Write the report, one HTML file and its data as JSON, into `folder`/RUN; returns the page's path.

        `corrected` puts rates in it as people's labels, or the judge's calibration, correct them.
        """
        from evalake.core.files import place_in
        from evalake.reports.page import write_page
        from evalake.tasks.report import build_report

        place = place_in(Path(folder), self.run_id)
        return write_page(build_report(self.lake, self.run_id, corrected=corrected), place)

    def figures(self) -> "dict[str, Picture]":
        """Draw the figures of the report as SVG, by title; those with nothing to draw are left out."""
        from evalake.reports.page import pictures
        from evalake.tasks.report import build_report

        return pictures(build_report(self.lake, self.run_id))

    def _items(self) -> pl.LazyFrame:
        return self.lake.frame(RUN_ITEMS).filter(run_id=self.run_id)

    def __repr__(self) -> str:
        return f"<Run {self.run_id} of {self.suite}: {self.state}, {self.row['samples']:,} samples>"

    def _repr_html_(self) -> str:
        """Show the run and its headline metrics in a notebook."""
        title = f"{self.suite} run {self.run_id}: {self.state}"
        note = f"{title}, {self.message}" if self.message else title
        if self.row["snapshot_id"] is None:
            return titled(note, None)
        return titled(note, self.headline())


def titled(title: str, frame: pl.DataFrame | None) -> str:
    """Write a title, and a frame under it if there is one, as HTML; no text of others is markup."""
    heading = f"<strong>{escape(visible(title))}</strong>"
    return heading if frame is None else f"{heading}{frame._repr_html_()}"


def carry_out(request: RunRequest) -> str:
    """Make a run, and return its id: also of one that could not ask everything. Raises EvalakeError where it failed."""
    from evalake.cli import terminal

    terminal.prepare()  # before Prefect is imported
    from evalake.flows.evaluate import IncompleteRunError, evaluate
    from evalake.tasks.preflight import carried, check
    from evalake.tasks.runtime.runs import run_of_flow

    with carried(request, check(request)):
        state = evaluate(**request.parameters, return_state=True)
    result = state.result(raise_on_failure=False)
    if isinstance(result, EvalakeError) and not isinstance(result, IncompleteRunError):
        raise result
    run_id = run_of_flow(Lake(request.lake), str(state.state_details.flow_run_id))
    if run_id is None or not (state.is_completed() or isinstance(result, IncompleteRunError)):
        raise EvalakeError(f"the run ended {state.name}: {state.message}")
    return run_id
