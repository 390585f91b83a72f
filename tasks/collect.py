"""Collect: finished conversations become rows, rows are published in few large merges, and everything is counted."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner

from suites.base import Dataset
from tasks import progress
from tasks.arguments import as_it_is
from tasks.context import RunContext
from tasks.converse import Dialogue
from tasks.derive import derive
from tasks.extract import extract
from tasks.failures import failure_of, land_failures
from tasks.plan import write_manifest
from tasks.publish import Published, publish_results
from tasks.runs import Tally, versions_of
from tasks.usage import CallCounter

PUBLISH_ROWS = 10_000

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


@task(name="publish", retries=2, retry_delay_seconds=1, cache_policy=NO_CACHE, persist_result=False)
def publish_rows(
    context: RunContext, rows: Rows, dialogues: Sequence[Dialogue], versions: Mapping[str, str]
) -> Published:
    """Publish rows by table, and the run items of dialogues; doing it again after a failure adds nothing twice."""
    write_manifest(context, dialogues, versions)
    return publish_results(context, rows, "call")


class Collector:
    """What the conversations of one run have given so far. Used from the flow's own thread only.

    Rows are published by `publisher`, which stays in the flow's process wherever the calls are made.
    """

    def __init__(self, context: RunContext, publisher: TaskRunner[Any]) -> None:
        self._context = context
        self._publisher = publisher
        self._rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        self._unlisted: list[Dialogue] = []  # whose run items are to land with the rows
        self._publication: PrefectFuture[Published] | None = None  # under way, while the next rows are collected
        self._versions: Mapping[str, str] = {}
        self._unanswered: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._tally = Tally()
        self.calls = CallCounter()
        self.has_rows = False

    def extract(self, datasets: Sequence[Dataset]) -> None:
        """Land the samples of the run."""
        extracted = extract(self._context.lake, self._context.run_id, datasets)
        self._left_out = extracted.left_out
        self._versions = versions_of(datasets)
        self._tally += Tally(rows_quarantined=extracted.quarantined)

    def add_settled(self, dialogues: Sequence[Dialogue], unsettled: Sequence[Dialogue]) -> None:
        """Take the dialogues that the ledger answered to their end."""
        waiting = {id(dialogue) for dialogue in unsettled}
        settled = [dialogue for dialogue in dialogues if id(dialogue) not in waiting]
        progress.advance(self._context.run_id, by=len(settled))
        self._unlisted += settled
        self._add(settled)

    def add(self, dialogues: Sequence[Dialogue]) -> None:
        """Take dialogues that calls have ended."""
        # When the manifest was first written, what judges would be asked was not yet known.
        self._unlisted += [dialogue for dialogue in dialogues if len(dialogue.answered) > 1]
        self._add(dialogues)

    def _add(self, dialogues: Sequence[Dialogue]) -> None:
        """Score dialogues that have ended, keep their failures, publish once there are enough rows."""
        self.calls.add(dialogues)
        land_failures(self._context, dialogues)
        for dialogue in dialogues:
            rows = self._context.suite.score(dialogue.item, dialogue.answered, self._context.options)
            if dialogue.failed and not rows.get(self._context.suite.results.table):
                self._unanswered[failure_of(dialogue).kind] += 1
            for table, of_table in rows.items():
                self._rows[table].extend(of_table)
        if sum(map(len, self._rows.values())) >= PUBLISH_ROWS:
            self._publish()

    def finish(self) -> None:
        """Publish what is left, and return when all has landed."""
        self._publish()
        self._await_publication()

    def derive(self) -> None:
        """Publish what follows from the run's rows as a whole."""
        self._count(derive(self._context, "call"))

    @property
    def tally(self) -> Tally:
        """Calls and rows so far."""
        return self._tally + self.calls.total

    @property
    def state(self) -> str:
        """How the run has ended, if it ends now."""
        if not self._unanswered:
            return "completed"
        return "incomplete" if self.has_rows else "failed"

    @property
    def message(self) -> str | None:
        """What a person should know about how the run went; None where there is nothing to say."""
        said = []
        if self._unanswered:
            said.append(f"{self._unanswered.total()} items have no answer ({_counted(self._unanswered)})")
        if self.tally.rows_quarantined:
            said.append(f"{self.tally.rows_quarantined} rows are in quarantine")
        if self._left_out:
            said.append(f"left out of the sources: {_counted(self._left_out)}")
        return "; ".join(said) or None

    @property
    def warnings(self) -> list[str]:
        """What a reader of the metrics must know."""
        if not self._unanswered:
            return []
        return [
            f"{self._unanswered.total()} items are missing because their calls failed ({_counted(self._unanswered)})"
        ]

    def _publish(self) -> None:
        """Begin to publish the rows collected since the last time; one publication at a time bounds memory."""
        self._await_publication()
        if not any(self._rows.values()):
            return
        parameters = {
            "context": self._context,
            "rows": as_it_is(self._rows),
            "dialogues": as_it_is(self._unlisted),
            "versions": self._versions,
        }
        self._publication = self._publisher.submit(publish_rows, parameters)
        self._rows, self._unlisted = defaultdict(list), []
        self.has_rows = True

    def _await_publication(self) -> None:
        if self._publication is not None:
            self._count(self._publication.result())
            self._publication = None

    def _count(self, published: Published) -> None:
        landed = published.landed
        self._tally += Tally(
            rows_landed=landed.inserted + landed.replaced,
            rows_already_present=landed.already_present,
            rows_quarantined=published.quarantined,
        )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
