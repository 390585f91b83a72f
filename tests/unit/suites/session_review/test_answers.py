"""A report lists sessions, worst first, with what they were about and the judge's words."""

from typing import Any

import polars as pl

from evalake.contracts.tables import SAMPLES
from evalake.reports.report import Report
from evalake.sdk import Dataset
from evalake.suites.session_review.session import AgentMessage
from evalake.suites.session_review.suite import SUITE
from evalake.suites.session_review.viewing import add_columns
from evalake.tasks.extract import sample_rows
from tests.unit.reports.samples import RUN, SNAPSHOT
from tests.unit.suites.session_review.support import sample, session

SCHEMA: dict[str, Any] = {
    "model": pl.String, "judge": pl.String, "session_id": pl.String, "sample_hash": pl.String, "replicate": pl.Int64,
    "total_score": pl.Int64, "failure_tags": pl.List(pl.String), "missing_tools": pl.List(pl.String),
}  # fmt: skip


def listed(*scores: int | None) -> pl.DataFrame:
    of = sample(session(AgentMessage(text="I look at the pods.")))
    rows: list[tuple[Any, ...]] = [
        ("agents", "j", f"s-{k}", of.sample_hash, 0, score, ["loops", "guesses"], []) for k, score in enumerate(scores)
    ]
    known = pl.DataFrame(sample_rows(Dataset("recorded", (of,))))
    return add_columns(pl.DataFrame(rows, schema=SCHEMA, orient="row"), {SAMPLES.table: known.lazy()})


def test_a_session_is_told_in_words() -> None:
    (row,) = listed(40).to_dicts()
    assert row["session"] == "Disk · disk full · I look at the pods."
    assert (row["band"], row["failures"], row["tools"]) == ("0 to 49", "loops, guesses", "")


def test_every_session_is_listed_the_worst_first() -> None:
    metrics = pl.DataFrame(
        [("agents", "j", "score_mean", "all", "", 50.0, 3, None, None, False)],
        schema=["model", "judge", "metric", "slice", "slice_value", "value", "n", "ci_low", "ci_high", "reliable"],
        orient="row",
    )
    built = Report(
        "Sessions",
        RUN,
        SNAPSHOT,
        metrics,
        SUITE.presentation.figures,
        answers=SUITE.presentation.answers,
        results=listed(90, None, 50, 49),
    )
    ((_, rows),) = built.mistakes()
    assert rows.select("band", "session_id").rows() == [
        ("not scored", "s-1"),
        ("0 to 49", "s-3"),
        ("50 to 74", "s-2"),
        ("75 to 100", "s-0"),
    ]
