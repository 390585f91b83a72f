"""Calibrate: ask judges about items of which the right judgement is known, and say how far theirs are right.

What the ledger holds is not asked again, so that a calibration is paid once, and is measured again from its replies
wherever it is of use.
"""

from collections.abc import Iterable, Sequence

import polars as pl

from core.errors import EvalakeError, UsageError
from metrics.decision_agreement import agreement_table
from storage.ledger import LedgerIndex
from suites.base import Calibration
from suites.registry import suite as find_suite
from suites.registry import suite_names
from tasks.runtime.context import RunContext
from tasks.steps.converse import Conversation, recall_or_call, replay_from_ledger
from tasks.steps.failures import without_answer


class CalibrationError(EvalakeError):
    """A judge gave no answer to a part of the calibration, so that nothing can be said of it."""


def calibrated_suites() -> tuple[str, ...]:
    """List the suites that have a calibration set."""
    return tuple(name for name in suite_names() if find_suite(name).calibration is not None)


def calibrate(context: RunContext, judge: str) -> pl.DataFrame:
    """Ask the judge what the ledger does not know, and return its accuracy by decision.

    Raises CalibrationError where calls were given up on, UsageError where the suite has no calibration set.
    """
    calibration, conversations = _begin(context, judge)
    recall_or_call(context, conversations, LedgerIndex.read(context.lake))
    if problem := without_answer(conversations, judge, "another calibration"):
        raise CalibrationError(problem)
    return _accuracy(calibration, conversations)


def accuracy_known(context: RunContext, judge: str) -> pl.DataFrame | None:
    """Compute the judge's accuracy by decision from the ledger alone; None where it was not calibrated."""
    if context.suite.calibration is None:
        return None
    calibration, conversations = _begin(context, judge)
    index = LedgerIndex.read(context.lake)
    # For most judges, the first item shows that they were never asked
    parts = (conversations[:1], conversations[1:])
    if any(replay_from_ledger(context, part, index).unanswered for part in parts):
        return None
    return _accuracy(calibration, conversations)


def _begin(context: RunContext, judge: str) -> tuple[Calibration, list[Conversation]]:
    calibration = context.suite.calibration
    if calibration is None:
        choices = ", ".join(calibrated_suites())
        raise UsageError(f"{context.suite_name} has no audits of known judgement: choose one of {choices}")
    return calibration, [Conversation(item, answered=answered) for item, answered in calibration.items(judge)]


def _accuracy(calibration: Calibration, conversations: Sequence[Conversation]) -> pl.DataFrame:
    pairs = calibration.compare([(conversation.item, conversation.answered) for conversation in conversations])
    return agreement_table(pairs, calibration.decisions)


def calibration_notes(context: RunContext, judges: Iterable[str]) -> list[str]:
    """Write notes for readers of a run's metrics on its judges that were calibrated: how often each was right."""
    known = [(judge, accuracy_known(context, judge)) for judge in judges]
    return [f"{judge}, calibrated: {_words(table)}" for judge, table in known if table is not None]


def _words(table: pl.DataFrame) -> str:
    shares = ", ".join(
        f"{row['decision']} {row['agreement']:.0%} [{100 * row['ci_low']:.0f}–{row['ci_high']:.0%}]"
        for row in table.iter_rows(named=True)
    )
    return f"right where the right judgement is known: {shares}"
