"""Ratings: what people give an investigation, kept in `human_labels` beside the score that they had before them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from contracts.arrow import conform
from contracts.hashing import content_hash
from contracts.human_labels import HUMAN_LABELS
from service.scorings import State
from service.views import Rating, micros
from storage.lake import Lake
from storage.landing import land
from storage.scorings import Watched
from suites.session_review.suite import SUITE

Row = Mapping[str, Any]


class Ratings:
    """The ratings of a lake's sessions."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows = Watched(lake, HUMAN_LABELS, suite=SUITE.name)

    def all(self) -> Sequence[Row]:
        """The rows of `human_labels` that rate a session."""
        return [row for row in self._rows.rows().iter_rows(named=True) if row["score"] is not None]

    def of(self, session_id: str, state: State) -> list[Rating]:
        """The ratings of one session, newest first."""
        scored = {(row["prompt_hash"], row["replicate"]): row for row in state.by_session.get(session_id, ())}
        rows = [row for row in self.all() if row["sample_id"] == session_id]
        rows.sort(key=lambda row: row["labelled_at"], reverse=True)
        return [_rating(row, scored.get((row["prompt_hash"], row["replicate"]))) for row in rows]

    def put(self, score: Row, value: float, note: str | None, user: str) -> Rating:
        """Keep a person's rating of a scored session, in place of an earlier one of theirs on this score."""
        row = {
            **dict.fromkeys(HUMAN_LABELS.column),
            **{name: score[name] for name in ("sample_id", "sample_hash", "model", "judge", "replicate")},
            "label_id": content_hash([SUITE.name, score["score_id"], None, user]),
            "suite": SUITE.name,
            "prompt_type": score["prompt_type"],
            "prompt_hash": score["prompt_hash"],
            "judge_hash": score["prompt_hash"],
            "score": value,
            "labeller": user,
            "labelled_at": datetime.now(UTC),
            "note": note,
        }
        land(self._lake, HUMAN_LABELS, conform([row], HUMAN_LABELS))
        return _rating(row, score)


def _rating(row: Row, score: Row | None) -> Rating:
    return Rating(
        session_id=row["sample_id"],
        score_id=score["score_id"] if score else None,
        score=row["score"],
        note=row["note"],
        rated_by=row["labeller"],
        rated_at_us=micros(row["labelled_at"]) or 0,
    )
