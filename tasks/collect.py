"""Collect: finished conversations become rows, rows are published in few large merges, and everything is counted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from prefect.assets import materialize
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner
from prefect.utilities.annotations import quote

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, RUN_ITEMS, SAMPLES
from evalake.core.hashing import content_hash
from evalake.models.failures import TRANSIENT
from evalake.reports.coverage import Coverage, Tolerance, counted, problems, remarks
from evalake.reports.wording import count_of, dollars
from evalake.sdk import Dataset
from evalake.sdk.results import FALLBACK_FOR
from evalake.storage.landing import land
from evalake.tasks.converse import Conversation
from evalake.tasks.coverage import Source, cover, save_coverage
from evalake.tasks.extract import Extracted
from evalake.tasks.failures import FailureCounter, land_failures
from evalake.tasks.measure import CallCounter, run_results
from evalake.tasks.plan import write_manifest
from evalake.tasks.publish import Published, publish_results, score_into
from evalake.tasks.runtime.artifacts import assets, tag_task_run
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import Tally, versions_of

# Derive: what follows from a run's rows as a whole (a panel's rows) is published and joins the run's manifest.


def derive(context: RunContext, origin: str) -> Published:
    """Publish the rows that the suite derives from the run's present rows.

    A repetition adds rows that can be derived since.
    """
    suite = context.suite
    if suite.scoring.derive is None or not context.lake.exists(suite.results):
        return Published()
    results = run_results(context.lake, suite, context.run_id, {}).collect()
    derived = suite.scoring.derive({suite.results.table: results, **_further(context, results)}, context.options)
    published = publish_results(context, derived.rows, origin)
    if derived.items:
        land(context.lake, RUN_ITEMS, conform([_manifest_row(context, item) for item in derived.items], RUN_ITEMS))
    return published


def _further(context: RunContext, results: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Read the rows of the suite's further tables that belong to result rows."""
    key = context.suite.results.key
    ours = results.lazy().select(key)
    return {
        each.table: context.lake.frame(each).join(ours, on=list(key), how="semi", nulls_equal=True).collect()
        for each in context.suite.scoring.extra_tables
    }


def _manifest_row(context: RunContext, item: Mapping[str, Any]) -> dict[str, Any]:
    identity = [item["sample_hash"], item["model"], item["judge"], item["prompt_type"], item["replicate"]]
    return {**item, "run_id": context.run_id, "suite": context.suite.name, "item_id": content_hash(identity)}


PUBLISH_ROWS = 10_000  # at once: a commit and its checks take as long for one row as for many

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


@materialize(
    "delta://results",  # stands for the tables of the suite, which `with_options` names
    name="publish",
    task_run_name="publish {context.suite_name}",
    retries=2,
    retry_delay_seconds=1,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def publish_rows(
    context: RunContext, rows: Rows, conversations: Sequence[Conversation], versions: Mapping[str, str]
) -> Published:
    """Publish rows by table, and the run items of conversations. A repetition lands no row twice."""
    tag_task_run(context.suite_name)
    return _publish_rows(context, rows, conversations, versions)


def _publish_rows(
    context: RunContext, rows: Rows, conversations: Sequence[Conversation], versions: Mapping[str, str]
) -> Published:
    write_manifest(context, conversations, versions)
    return publish_results(context, rows, "call")


class Collector:
    """Collects the ended conversations of one run. Used from the flow's own thread only.

    Rows are published by `publisher`, which stays in the flow's process wherever the calls are made.
    """

    def __init__(self, context: RunContext, publisher: TaskRunner[Any]) -> None:
        self._context = context
        self._publisher = publisher
        self._rows: dict[str, list[Mapping[str, Any]]] = {}
        self._unlisted: list[Conversation] = []  # whose run items are to land with the rows
        self._publication: PrefectFuture[Published] | None = None  # under way, while the next rows are collected
        self._versions: Mapping[str, str] = {}
        self._unanswered = FailureCounter(context)
        self._not_asked = 0  # because of the run's ceiling
        self._skipped: Counter[str] = Counter()
        self._tally = Tally()
        self.covered: Sequence[Coverage] = ()
        self.waiting: str | None = None  # for which batch jobs, in words
        self._tolerance = Tolerance()
        self.calls = CallCounter()
        self.stood_in: Counter[tuple[str, str]] = Counter()  # items by who judged them, and in whose place
        self.has_rows = False

    def take(self, extracted: Extracted, datasets: Sequence[Dataset]) -> None:
        """Take what became of the run's datasets."""
        self._skipped = extracted.skipped
        self._versions = versions_of(datasets)
        self._tally += Tally(rows_quarantined=extracted.quarantined)

    def add(self, conversations: Sequence[Conversation]) -> None:
        """Score conversations that have ended, keep their failures, publish once there are enough rows."""
        self.calls.add(conversations)
        land_failures(self._context, conversations)
        # An item belongs to the judge that was asked first; to a fallback, too, where that judged it.
        belonging = (each for each in conversations if not (each.fallback_for and each.failed))
        self._unlisted += [each for each in belonging if not each.is_listed]
        conversations = [conversation for conversation in conversations if not conversation.is_passed_on]
        self.stood_in.update(
            (each.item.judge or "", each.fallback_for)
            for each in conversations
            if each.fallback_for and not each.failed
        )
        refused = sum(conversation.is_refused for conversation in conversations)
        self._not_asked += refused
        self._tally += Tally(items_done=len(conversations) - refused)
        for conversation in conversations:
            if conversation.is_refused:
                continue
            if not score_into(self._rows, self._context, conversation) and conversation.failed:
                self._unanswered.add(conversation)
        if sum(map(len, self._rows.values())) >= PUBLISH_ROWS:
            self._publish()

    def finish(self) -> None:
        """Publish the remaining rows, and return when all have landed."""
        self._publish()
        self._await_publication()

    def stop(self) -> None:
        """Publish the remaining rows of a run that is cut off, without a task: Prefect begins none in such a run."""
        self._await_publication()
        self._tally += _publish_rows(self._context, self._rows, self._unlisted, self._versions).tally
        self._rows, self._unlisted = {}, []

    def derive(self) -> None:
        """Publish the rows that the suite derives from all rows of the run."""
        self._tally += derive(self._context, "call").tally

    def judges(self, called: Sequence[str]) -> tuple[str, ...]:
        """List the called judges of the run, with the fallbacks that stood in for one in any attempt."""
        context = self._context
        if FALLBACK_FOR not in context.suite.results.column:
            return tuple(called)
        listed = context.lake.frame(RUN_ITEMS).filter(run_id=context.run_id).select(pl.col("judge").unique())
        return tuple(dict.fromkeys((*called, *listed.collect()["judge"].drop_nulls().sort())))

    def cover(self, called: Sequence[str], sources: Sequence[Source], tolerance: Tolerance) -> None:
        """Compute and land the coverage of all items of the run."""
        context = self._context
        self.covered = cover(context.lake, context.suite, context.run_id, self.judges(called), sources)
        self._tolerance = tolerance
        save_coverage(context.lake, context.run_id, self.covered)

    @property
    def tally(self) -> Tally:
        """Calls and rows so far."""
        return self._tally + self.calls.total

    @property
    def state(self) -> str:
        """The state of the run, if it ends now."""
        if self._unanswered.kinds and not self.has_rows and not self._not_asked and not self.waiting:
            return "failed"
        lacks = (
            self.waiting or self._not_asked or self.tally.rows_quarantined or problems(self.covered, self._tolerance)
        )
        return "incomplete" if lacks else "completed"

    @property
    def failed_transiently(self) -> bool:
        """Whether something is missing because calls were given up on for a reason that passes."""
        return any(kind in TRANSIENT for each in self.covered for kind in each.missing_kinds)

    @property
    def message(self) -> str | None:
        """The message of the run for people; None without one."""
        sentences = [self.waiting] if self.waiting else []
        if self._not_asked:
            cost = "unknown cost" if self.tally.cost_usd is None else f"{dollars(self.tally.cost_usd)} USD"
            spent = f"{cost} in {self.tally.calls_made} calls"
            sentences.append(
                f"the ceiling of {self._context.ceiling} is reached ({spent}), and {self._not_asked} items were not "
                "asked: raise it and retry, or run again for as much once more"
            )
        sentences += [
            f"{judge} judges {count} items in place of {asked}, whose provider could not answer"
            for (judge, asked), count in self.stood_in.items()
        ]
        if self.calls.imported:
            sentences.append(f"{count_of(self.calls.imported, 'call')} answered from imported logs")
        if kinds := self._unanswered.kinds:
            sentences.append(f"{kinds.total()} items have no answer: {self._unanswered}")
        sentences += problems(self.covered, self._tolerance)
        sentences += remarks(self.covered, self._tolerance)
        if self.tally.rows_quarantined:
            refused = self.tally.rows_quarantined
            sentences.append(f"{count_of(refused, 'row')} {'is' if refused == 1 else 'are'} in quarantine")
        if self._skipped:
            sentences.append(f"left out of the sources: {counted(self._skipped)}")
        return "; ".join(sentences) or None

    def _publish(self) -> None:
        """Begin to publish the rows collected since the last time; one publication at a time bounds memory."""
        self._await_publication()
        has_rows = any(self._rows.values())
        if not has_rows and not self._unlisted:
            return
        parameters = {
            "context": self._context,
            # Quoted: Prefect would walk through them, which takes longer than the task itself
            "rows": quote(self._rows),
            "conversations": quote(self._unlisted),
            "versions": self._versions,
        }
        suite, lake = self._context.suite, self._context.lake
        publish = publish_rows.with_options(
            assets=assets(lake, (suite.results, *suite.scoring.extra_tables)),
            asset_deps=assets(lake, (SAMPLES, CALLS)),
        )
        self._publication = self._publisher.submit(publish, parameters)
        self._rows, self._unlisted = {}, []
        self.has_rows = self.has_rows or has_rows

    def _await_publication(self) -> None:
        if self._publication is not None:
            self._tally += self._publication.result().tally
            self._publication = None
