"""One scoring that was asked for by name: its row from pending to its end. Everything about it is in its row."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from contracts.arrow import conform
from contracts.configuration import Configuration
from contracts.errors import ConfigurationError, EvalakeError, UsageError
from contracts.tables import CALLS, SAMPLES
from providers.redaction import redact
from providers.request import Failure, Reply
from storage.lake import Lake
from storage.landing import land
from storage.ledger import shared_index
from suites.base import Item, Sample
from suites.session_review.contract import RESULTS
from suites.session_review.material import text as storable
from suites.session_review.score import begun
from suites.session_review.scores import read_total
from tasks.circuit import CIRCUIT_OPEN, why_open
from tasks.context import RunContext
from tasks.converse import Dialogue, call, next_request
from tasks.failures import land_failures
from tasks.publish import publish_results

SUITE = "session_review"
ACTIVE = ("pending", "in_progress")
PHASES: Mapping[str, float] = {"analyzing_methodology": 10.0, "identifying_missing_tools": 60.0}
"""The phases of a scoring in their order, and the progress at which each begins."""

LONGEST_MESSAGE = 2000

Row = dict[str, Any]


class LostScoringError(EvalakeError):
    """A scoring was given up on by others while it was still running; what it found does not count."""


def phase_at(progress: float) -> str:
    """The phase that a progress is in."""
    return [phase for phase, begins in PHASES.items() if begins <= max(progress, 10.0)][-1]


def pending(context: RunContext, sample: Sample, judge: str, replicate: int, triggered_by: str) -> Row:
    """The row of a new scoring. Its `run_id` is that of the context: who asked for it, in one request."""
    item = _item(context, sample, judge, replicate)
    request = next_request(context, Dialogue(item))
    assert request is not None
    return {
        **begun(item, request.prompt_hash, context.options),
        "run_id": context.run_id,
        "origin": "call",
        "score_triggered_by": triggered_by,
        "started_at": datetime.now(UTC),
    }


def read_score(lake: Lake, score_id: str) -> Row:
    """A scoring's row as it is now. Raises UsageError where there is none."""
    found = lake.frame(RESULTS).filter(pl.col("score_id") == score_id).collect()
    if found.is_empty():
        raise UsageError(f"the lake {lake.uri} has no scoring {score_id[:12]}")
    return found.row(0, named=True)


def read_sample(lake: Lake, sample_hash: str) -> Sample:
    """A session as the lake holds it. Raises UsageError where it does not."""
    wanted = (pl.col("suite") == SUITE) & (pl.col("sample_hash") == sample_hash)
    found = lake.frame(SAMPLES).filter(wanted).head(1).collect()
    if found.is_empty():
        raise UsageError(f"the lake {lake.uri} has no session with the hash {sample_hash[:12]}")
    row = found.row(0, named=True)
    return Sample(**{name: row[name] for name in Sample.__dataclass_fields__ if name in row})


def failed(lake: Lake, row: Row, kind: str, message: str) -> bool:
    """End a scoring as failed, with a reason; False where it was over already."""
    said = storable(redact(message))[:LONGEST_MESSAGE] if message else None  # type: ignore[index]
    ended = {**row, "status": "failed", "error_kind": kind, "error_message": said or kind, "completed_at": _end(row)}
    return land(lake, RESULTS, conform([ended], RESULTS)).replaced == 1


@dataclass
class Scoring:
    """A scoring under way."""

    context: RunContext
    row: Row
    dialogue: Dialogue

    @classmethod
    def take(cls, lake: Lake, score_id: str, configuration: Configuration) -> "Scoring | None":
        """Take a scoring on; None where it is completed already.

        Raises UsageError where there is none, or where it has failed; ConfigurationError, having failed it, where
        this process would not ask the judge what the scoring was begun with.
        """
        row = read_score(lake, score_id)
        context = RunContext(row["run_id"], SUITE, lake, configuration)
        if row["status"] in ACTIVE:
            land(lake, RESULTS, conform([{**row, "status": "in_progress"}], RESULTS))
            row = read_score(lake, score_id)
        if row["status"] == "completed":
            return None
        if row["status"] == "failed":
            raise UsageError(f"the scoring {score_id[:12]} has failed ({row['error_message']}): ask for a new one")
        sample = read_sample(lake, row["sample_hash"])
        dialogue = Dialogue(_item(context, sample, row["judge"], row["replicate"]))
        request = next_request(context, dialogue)
        if request is None or request.prompt_hash != row["prompt_hash"]:
            message = "the worker's criteria or configuration are not those of the service that began the scoring"
            failed(lake, row, "configuration", message)
            raise ConfigurationError(message)
        return cls(context, row, dialogue)

    @property
    def progress(self) -> float:
        """How far it is: the judge looks for missing tools once it has given a total."""
        answers = [a.outcome.text for a in self.dialogue.answered if isinstance(a.outcome, Reply)]
        is_scored = any(read_total(answer) is not None for answer in answers)
        return PHASES["identifying_missing_tools" if is_scored else "analyzing_methodology"]

    def walk(self) -> None:
        """Walk the judge's conversation; what the ledger knows is not asked again. A call given up on becomes a row.

        Raises EvalakeError, having failed the scoring, where the judge's provider counts as down.
        """
        lake = self.context.lake
        if reason := why_open(lake, self.row["judge"], self.context.configuration):
            self.fail(CIRCUIT_OPEN, reason)
            raise EvalakeError(reason)
        ledger, options = lake.ensure(CALLS), tuple(sorted(lake.storage_options.items()))
        index = shared_index(lake.uri, options, str(ledger.metadata().id), ledger.version())
        call(self.context, [self.dialogue], index)
        land_failures(self.context, [self.dialogue])

    def end(self) -> Row:
        """Land what the conversation gave; returns the row as it stands.

        Raises EvalakeError where it gave no score, LostScoringError where others had ended the scoring before.
        """
        lake, suite = self.context.lake, self.context.suite
        rows = suite.score(self.dialogue.item, self.dialogue.answered, self.context.options)
        if not rows.get(RESULTS.table):
            outcome = self.dialogue.answered[-1].outcome
            assert isinstance(outcome, Failure)
            self.fail(outcome.kind, f"the judge gave no answer: {outcome.message}")
        else:
            kept = {"score_triggered_by": self.row["score_triggered_by"], "started_at": self.row["started_at"]}
            row = {**rows[RESULTS.table][0], **kept, "completed_at": _end(self.row)}
            published = publish_results(self.context, {RESULTS.table: [row]}, "call")
            if published.quarantined:
                self.fail("contract", "the score breaks its contract: it is in quarantine")
            if published.landed.replaced:
                publish_results(self.context, {name: of for name, of in rows.items() if name != RESULTS.table}, "call")
        row = read_score(lake, self.row["score_id"])
        if row["status"] == "failed" and row["error_kind"] == "lost":
            raise LostScoringError(f"the scoring {row['score_id'][:12]} was given up on: {row['error_message']}")
        if row["status"] != "completed":
            raise EvalakeError(f"the session {row['session_id']!r} has no score: {row['error_message']}")
        return row

    def fail(self, kind: str, message: str) -> None:
        """End it as failed, unless it is over."""
        failed(self.context.lake, self.row, kind, message)


def _item(context: RunContext, sample: Sample, judge: str, replicate: int) -> Item:
    return Item(sample, context.suite.baseline_models[0], judge, context.suite.prompt_types[0], replicate)


def _end(row: Row) -> datetime:
    """Now; the start where this machine's clock is behind that of the one that began it."""
    now = datetime.now(UTC)
    return now if row["started_at"] is None else max(now, row["started_at"])
