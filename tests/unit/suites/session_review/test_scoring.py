"""Scoring: the phases that a progress is in."""

import pytest

from evalake.suites.session_review.score import phase_at


@pytest.mark.parametrize(
    ("progress", "phase"),
    [
        (0.0, "analyzing_methodology"),
        (59.9, "analyzing_methodology"),
        (60.0, "identifying_missing_tools"),
        (100.0, "identifying_missing_tools"),
    ],
)
def test_a_progress_is_in_the_phase_that_began_last(progress: float, phase: str) -> None:
    assert phase_at(progress) == phase
