"""The flow score-session: executes the judge's conversation about a session, from a pending row to its end.

The row of `session_scores` has the whole state of a scoring.
"""

import logging
from asyncio import CancelledError
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import polars as pl
from prefect import flow
from prefect.exceptions import TerminationSignal

from evalake.contracts.contract import Contract, Row
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import SAMPLES
from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError, EvalakeError, UsageError
from evalake.core.hashing import content_hash
from evalake.core.redaction import redact
from evalake.models.failures import OTHERS_MAY_ANSWER
from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange, Item, Sample
from evalake.storage.lake import Lake
from evalake.storage.landing import land, land_together
from evalake.storage.ledger import key_of, newest_index
from evalake.suites.session_review.contract import RESULTS
from evalake.suites.session_review.prompts import reads_total
from evalake.suites.session_review.score import ERROR, GIVEN_UP, NO_TOTAL, PHASES, begun, lacks_second_turn
from evalake.suites.session_review.sources.generic import text as storable
from evalake.tasks.call import recall_or_call
from evalake.tasks.converse import Conversation, keys_of, next_request
from evalake.tasks.extract import sample_of
from evalake.tasks.failures import land_failures
from evalake.tasks.publish import Admitted, admit
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.form import ConfigurationFile, LakeUri, flow_inputs
from evalake.tasks.runtime.progress import heartbeat_artifact
from evalake.tasks.runtime.resources import RunOverError, end_attempt, release_client

DEPLOYMENT = "on-demand"  # of workers for all lakes
SUITE = "session_review"
LONGEST_MESSAGE = 2000
BEATS = 6  # that a scoring may miss before it counts as lost; each is a write, which a Prefect server on SQLite feels

logger = logging.getLogger("evalake.service")

_running: dict[str, RunContext] = {}  # in this process, by score id

NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class LostScoringError(EvalakeError):
    """The service ended a scoring while it was running; its result does not count."""


@flow(name="score-session", persist_result=False)
def score_session(
    score_id: str,
    lake: LakeUri = None,
    configuration_file: ConfigurationFile = None,
) -> int | None:
    """Score the session of a pending scoring; returns the total.

    A run of a completed scoring asks for missing tools where the judge could not be asked, else it does nothing. Any
    error ends a scoring as failed, with a reason; the service finds scorings that were never started.

    Args:
        score_id: The pending scoring in session_scores.
    """
    where, configuration = flow_inputs(lake, configuration_file)
    scoring = Scoring.take(where, score_id, configuration)
    if scoring is None:
        return None
    _running[score_id] = scoring.context
    title = f"{scoring.row['session_id'][:80]}: 10 methodology, 60 missing tools"
    try:
        beat_seconds = configuration.service.lost_after_seconds / BEATS
        progress = heartbeat_artifact(f"scoring-{score_id[:16]}", title, lambda: scoring.progress, beat_seconds)
        with scoring.context.scope("score session"), progress:
            scoring.walk()
            total: int | None = scoring.end()["total_score"]
    except BaseException as error:
        scoring.fail(ERROR, _reason(error))  # without effect after its end
        raise
    finally:
        del _running[score_id]
        release_client(scoring.context)
    return total


def give_up(score_id: str) -> None:
    """End a running scoring of this process as failed, without waiting for its judge."""
    if (context := _running.get(score_id)) is not None:
        end_attempt(context)


def pending(
    context: RunContext, sample: Sample, judge: str, replicate: int, triggered_by: str, after: Row | None = None
) -> Row:
    """Build the row of a new scoring, whose `landed_by_run` is the context's run.

    `after` is a scoring with the same number, whose end left calls that are paid for.
    """
    item = item_of(context, sample, judge, replicate)
    request = next_request(context, Conversation(item))
    assert request is not None
    asked = keys_of(context, request, replicate)[0]
    unanswered = Failure("circuit_open", "not asked yet", 0)
    row = begun(item, Exchange(asked.prompt_hash, unanswered, endpoint=asked.endpoint), context.options)
    return {
        **row,
        "score_id": row["score_id"] if after is None else content_hash([row["score_id"], after["score_id"]]),
        "landed_by_run": context.run_id,
        "origin": "call",
        "score_triggered_by": triggered_by,
        "asked_at": datetime.now(UTC),
    }


def read_score(lake: Lake, score_id: str) -> Row:
    """Read a scoring's current row. Raises UsageError for an unknown scoring."""
    rows = lake.frame(RESULTS).filter(pl.col("score_id") == score_id).collect()
    if rows.is_empty():
        raise UsageError(f"the lake {lake.uri} has no scoring {score_id[:12]}")
    return rows.row(0, named=True)


def read_samples(lake: Lake, sample_hashes: Sequence[str]) -> dict[str, Sample]:
    """Read sessions from the lake by hash. Raises UsageError for a missing one."""
    wanted = (pl.col("suite") == SUITE) & pl.col("sample_hash").is_in(sample_hashes)
    rows = lake.frame(SAMPLES).filter(wanted).collect().iter_rows(named=True)
    samples = {row["sample_hash"]: sample_of(row) for row in rows}
    for sample_hash in sample_hashes:
        if sample_hash not in samples:
            raise UsageError(f"the lake {lake.uri} has no session with the hash {sample_hash[:12]}")
    return samples


def failed(lake: Lake, row: Row, kind: str, message: str) -> bool:
    """End a scoring as failed, with a reason; returns False after its end."""
    return land(lake, RESULTS, _failure(row, kind, message)).replaced == 1


@dataclass
class Scoring:
    """A running scoring."""

    context: RunContext
    row: Row
    conversation: Conversation

    @classmethod
    def take(cls, lake: Lake, score_id: str, configuration: Configuration) -> "Scoring | None":
        """Start a pending scoring; returns None for a completed one.

        Raises UsageError for an unknown or failed scoring. Where this process's first request to the judge differs from
        the scoring's, fails the scoring and raises ConfigurationError.
        """
        row = read_score(lake, score_id)
        # Several scorings may have one run: `attempt` gives each a client
        context = RunContext(row["landed_by_run"], SUITE, lake, configuration, attempt=score_id)
        if row["status"] == "completed" and not lacks_second_turn(row):
            return None
        if row["status"] == "failed":
            raise UsageError(f"the scoring {score_id[:12]} has failed ({row['error_message']}): ask for a new one")
        row = {**row, "started_at": row["started_at"] or _now(row)}  # lands with the end
        sample = read_samples(lake, [row["sample_hash"]])[row["sample_hash"]]
        own = row["endpoint"]  # part of the scoring's identity
        conversation = Conversation(item_of(context, sample, row["judge"], row["replicate"]), given_by=(own, own))
        request = next_request(context, conversation)
        if request is None or keys_of(context, request, row["replicate"])[0] != key_of(row):
            message = "the worker's criteria or configuration differ from those of the service"
            failed(lake, row, "configuration", message)
            raise ConfigurationError(message)
        return cls(context, row, conversation)

    @property
    def progress(self) -> float:
        """The progress: the judge looks for missing tools after it has given a total."""
        answers = [a.outcome for a in self.conversation.answered if isinstance(a.outcome, Reply)]
        read = reads_total(self.context.options, self.conversation.item.prompt_type)
        is_scored = any(read(answer) is not None for answer in answers)
        return PHASES["identifying_missing_tools" if is_scored else "analyzing_methodology"]

    def walk(self) -> None:
        """Execute the judge's conversation; the ledger answers known calls, and a failed call becomes a row.

        Where the judge's provider cannot answer, its fallbacks are asked in turn.
        """
        asked, item = self.row["judge"], self.conversation.item
        for judge in (asked, *self.context.configuration.fallbacks(asked)):
            if judge != asked:
                logger.warning("%s is asked in place of %s, whose provider cannot answer", judge, asked)
                self.conversation = Conversation(replace(item, judge=judge))
            _, _, index = newest_index(self.context.lake)
            recall_or_call(self.context, [self.conversation], index)
            land_failures(self.context, [self.conversation])
            if not self._is_unanswered():
                return

    def _is_unanswered(self) -> bool:
        """Tell whether the first turn failed in a way in which another provider may not."""
        outcome = self.conversation.answered[-1].outcome
        is_first = self.progress == PHASES["analyzing_methodology"]
        return is_first and isinstance(outcome, Failure) and outcome.kind in OTHERS_MAY_ANSWER

    def end(self) -> Row:
        """Land the result of the conversation; returns the scoring's row.

        Raises EvalakeError without a score, LostScoringError where the service has ended the scoring.
        """
        lake, suite = self.context.lake, self.context.suite
        rows = dict(suite.scoring.score(self.conversation.item, self.conversation.answered, self.context.options))
        if not rows.get(RESULTS.table):
            outcome = self.conversation.answered[-1].outcome
            assert isinstance(outcome, Failure)
            self.fail(outcome.kind, f"the judge gave no answer: {outcome.message}")
        else:
            kept = {name: self.row[name] for name in ("score_id", "score_triggered_by", "asked_at", "started_at")}
            row = {**rows.pop(RESULTS.table)[0], **kept, "completed_at": _now(self.row)}
            row["fallback_for"] = self.row["judge"] if row["judge"] != self.row["judge"] else self.row["fallback_for"]
            if row["error_kind"] == NO_TOTAL:
                logger.warning("the judge's words about %r: %s", row["session_id"], redact(row["score_analysis"] or ""))
            if read_score(lake, row["score_id"])["status"] != "failed":  # else the service has ended it
                for contract in suite.contracts:  # first: nothing lands for a score that is completed
                    if of_table := rows.get(contract.table):
                        self._land(contract, [{**each, "score_id": row["score_id"]} for each in of_table])
            if self._land(RESULTS, [row]).quarantined:
                self.fail("contract", "the score breaks its contract: it is in quarantine")
        score = read_score(lake, self.row["score_id"])
        if score["status"] == "failed" and score["error_kind"] in GIVEN_UP:
            raise LostScoringError(f"the scoring {score['score_id'][:12]} was given up on: {score['error_message']}")
        if score["status"] != "completed":
            raise EvalakeError(f"the session {score['session_id']!r} has no score: {score['error_message']}")
        return score

    def _land(self, contract: Contract, rows: Sequence[Row]) -> Admitted:
        landing = {"landed_by_run": self.context.run_id, "origin": "call"}
        admitted = admit(self.context.lake, self.context.run_id, contract, rows, landing, keeps_passed=False)
        land_together(self.context.lake, contract, admitted.rows)
        return admitted

    def fail(self, kind: str, message: str) -> None:
        """End it as failed, unless it has ended."""
        land_together(self.context.lake, RESULTS, _failure(self.row, kind, message))


def item_of(context: RunContext, sample: Sample, judge: str, replicate: int) -> Item:
    """Build the item of a session's scoring."""
    return Item(sample, context.suite.conversation.default_models[0], judge, context.suite.prompts.types[0], replicate)


def _failure(row: Row, kind: str, message: str) -> pl.DataFrame:
    """Build the row of a scoring that has failed."""
    text = storable(redact(message))[:LONGEST_MESSAGE] if message else None  # type: ignore[index]
    ended = {**row, "status": "failed", "error_kind": kind, "error_message": text or kind, "completed_at": _now(row)}
    return conform([ended], RESULTS)


def _reason(error: BaseException) -> str:
    """Describe the failure of a scoring, also for errors without a message."""
    if isinstance(error, TerminationSignal | KeyboardInterrupt | SystemExit | RunOverError):
        return "its process was terminated before the judge had answered: start a new scoring"
    if isinstance(error, CancelledError):
        return "it was cancelled"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _now(row: Row) -> datetime:
    """Return the time, or the row's latest time where this machine's clock is behind."""
    return max(datetime.now(UTC), *(row[name] or NEVER for name in ("asked_at", "started_at")))
