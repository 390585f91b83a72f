"""What a report of session_review shows: scores by judge, their bands and categories, the tools that were missed."""

from evalake.sdk.figures import Bars, Figure, HeatMap, Quantity, Ranking, Unit
from evalake.sdk.people import people_figures
from evalake.suites.session_review.metrics import BANDS
from evalake.suites.session_review.people import LABELLING
from evalake.suites.session_review.replies import CATEGORIES

MEAN = Quantity("score_mean", "mean score", Unit.POINTS)
MEDIAN = Quantity("score_median", "median score", Unit.POINTS)
FAILURES = Quantity("scoring_failure_rate", "scorings that failed", higher_is_better=False)

FIGURES: tuple[Figure, ...] = (
    Ranking(
        "Scores",
        MEAN,
        (
            Quantity("retest_std", "retest deviation of one score", Unit.POINTS, higher_is_better=False),
            MEDIAN,
            Quantity("score_std", "standard deviation", Unit.POINTS, higher_is_better=False),
            FAILURES,
        ),
        note="Scores go from 0 to 100. They compare investigations under one judge; two judges are two rulers. Asked "
        "again, one session's score differs by the retest deviation, which is known where scorings were repeated.",
    ),
    Bars(
        "Scores by band",
        tuple(
            Quantity(f"score_band_{name}_rate", f"{lowest} to {highest}", higher_is_better=name != "red")
            for name, (lowest, highest) in BANDS.items()
        ),
        stacked=True,
        colours=("#cf4f4f", "#c9a227", "#4a9d5b"),
    ),
    Bars(
        "Mean points by category, of 25",
        tuple(Quantity(f"category_mean_{name}", name.replace("_", " "), Unit.POINTS) for name in CATEGORIES),
    ),
    HeatMap("Mean score by type of alert", MEAN, "alert_type"),
    HeatMap("Mean score by agent", MEAN, "agent"),
    HeatMap(
        "Sessions in which a tool was missed",
        Quantity("missing_tool_count", "sessions", Unit.COUNT, higher_is_better=False),
        "tool_name",
    ),
    *people_figures(LABELLING),
)
