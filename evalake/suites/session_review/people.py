"""What experts are asked about sessions: the points that a judge gives, blind, from the session's text alone.

An answer is about the investigation, so it counts for every scoring of that session, whichever judge made it, as do
ratings through the scoring API.
"""

import polars as pl

from evalake.sdk import Labelling, Question, Sample, Seen, Stage
from evalake.sdk.people import SAMPLE, Correction, by_answers
from evalake.suites.session_review.metrics import in_bands
from evalake.suites.session_review.replies import CATEGORIES, CATEGORY_POINTS, HIGHEST
from evalake.suites.session_review.session import session_text
from evalake.suites.session_review.sources.read import SUITE
from evalake.suites.session_review.sources.tarsy_live import QUALITIES, QUALITY, TARSY_SCORE

QUESTION = "score"  # what a rating answers
BUDGET = 20_000  # characters of a session that people read, shortened as for a judge
APART = 10  # points of 100 by which judges differ so much that people should say

_completed = pl.col("status") == "completed"
_range = pl.col("total_score").max() - pl.col("total_score").min()

WORTH = 1.0 + 4.0 * (_range >= APART).fill_null(value=False).cast(pl.Float64)
"""The weight by which a session is drawn: higher where judges, or repeats of one, differ by APART or more."""

_ASKED = {
    "logical_flow": "How sound is the path of reasoning?",
    "consistency": "How well do observations carry the conclusions?",
    "tool_relevance": "How fitting and complete is the use of tools?",
    "synthesis_quality": "How well is the evidence brought together?",
}


def _session(seen: Seen) -> str | None:
    if not seen.sample:
        return None
    return session_text(Sample(SUITE, seen.sample["dataset"], "", seen.sample["input"]), BUDGET)


SESSION = Stage(
    (
        Question(
            QUESTION,
            "How good is the investigation as a whole?",
            most=HIGHEST,
            help="0 to 100, the process before the outcome.",
            told={"judge": pl.when(_completed).then(pl.col("total_score"))},
        ),
        *(
            Question(
                category,
                _ASKED[category],
                most=CATEGORY_POINTS,
                help=f"{category.replace('_', ' ').capitalize()}: 0 to {CATEGORY_POINTS}.",
                told={"judge": pl.when(_completed).then(pl.col(category))},
            )
            for category in CATEGORIES
        ),
    ),
    {"session": _session},
    about=SAMPLE,
    blind=True,
    words="The investigation, by what was done and said in it.",
)

FROM_TARSY = Stage(
    (
        Question(
            TARSY_SCORE,
            "What did TARSy's own judge give the investigation?",
            most=HIGHEST,
            told={"judge": pl.when(_completed).then(pl.col("total_score"))},
        ),
        Question(
            QUALITY,
            "How accurate did TARSy's reviewer find the investigation?",
            QUALITIES,
            told={"judge": pl.when(_completed).then(in_bands(pl.col("total_score"), QUALITIES))},
        ),
    ),
    {},
    about=SAMPLE,
    imported=True,
)
"""What comes with sessions of today's TARSy: its own score is a machine's, so that it is not mixed with people's."""

LABELLING = Labelling(SUITE, (SESSION, FROM_TARSY), worth=WORTH, counted=_completed)

CORRECTED = {"score_mean": Correction(by_answers(QUESTION, pl.when(_completed).then(pl.col("total_score")), HIGHEST))}
"""How the mean score is corrected by people's scores."""
