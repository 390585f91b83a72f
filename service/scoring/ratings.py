"""Ratings: what people give an investigation, kept in `human_labels` beside the score that they had before them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from contracts.compile.arrow import conform
from contracts.contract import Row
from contracts.tables.human_labels import HUMAN_LABELS, answered
from core.hashing import content_hash
from service.scoring.scorings import State
from service.scoring.views import Rating, micros
from storage.cached_table import CachedTable
from storage.lake import Lake
from storage.landing import land
from suites.session_review.people import QUESTION
from suites.session_review.suite import SUITE


class Ratings:
    """The ratings of a lake's sessions."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows = CachedTable(lake, HUMAN_LABELS, suite=SUITE.name)

    def all(self) -> Sequence[Row]:
        """List the rows of `human_labels` that rate a session."""
        return [row for row in self._rows.rows().iter_rows(named=True) if row["question"] == QUESTION]

    def of(self, session_id: str, state: State) -> list[Rating]:
        """List the ratings of one session, newest first."""
        scored = {rated(row): row for row in state.by_session.get(session_id, ())}
        rows = [row for row in self.all() if row["sample_id"] == session_id]
        rows.sort(key=lambda row: row["labelled_at"], reverse=True)
        return [_rating(row, scored.get(rated(row))) for row in rows]

    def put(self, score: Row, value: float, note: str | None, user: str) -> Rating:
        """Keep a person's rating of a scored session, in place of that person's earlier one of this score."""
        shown = ("sample_id", "sample_hash", "model", "judge", "prompt_type", "replicate")
        word = {
            "label_id": content_hash([SUITE.name, score["score_id"], None, user]),
            "suite": SUITE.name,
            **{name: score[name] for name in shown},
            "finding_id": None,
            "annotator": user,
            "inclusion_probability": None,
            "draw": None,
            "labelled_at": datetime.now(UTC),
            "note": note,
        }
        (row,) = answered(word, {QUESTION: value})
        land(self._lake, HUMAN_LABELS, conform([row], HUMAN_LABELS))
        return _rating(row, score)


def rated(row: Row) -> tuple[Any, ...]:
    """Build the key of the score that a rating is about, from a row of `human_labels` or `session_scores`."""
    return tuple(row[name] for name in ("sample_hash", "judge", "prompt_type", "replicate"))


def _rating(row: Row, score: Row | None) -> Rating:
    return Rating(
        session_id=row["sample_id"],
        score_id=score["score_id"] if score else None,
        score=row["score"],
        note=row["note"],
        rated_by=row["annotator"],
        rated_at_us=micros(row["labelled_at"]) or 0,
    )
