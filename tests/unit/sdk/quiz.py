"""A quiz whose results people label: what it asks, its results, sheets about them, and what people said."""

from datetime import UTC, datetime
from typing import Any

import polars as pl

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, HUMAN_LABELS, SAMPLES
from evalake.contracts.tables.ledger import CALL_KEY
from evalake.sdk import Labelling, Question, Stage
from evalake.sdk.people import LABEL, SAMPLE, YES_NO, of_result, yes_no
from evalake.sdk.sheets import lines_to_fill_in, read_labels

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
TRUE = Question("true", "Is it true?", YES_NO, told={LABEL: yes_no(pl.col("label")), "model": yes_no(pl.col("said"))})
POINTS = Question("points", "How many points?", most=20, column="p", told={"model": pl.col("points")})
LABELLING = Labelling(
    "quiz",
    (
        Stage(
            (POINTS,), {name: of_result(name) for name in ("question", "answer")}, where=lambda seen: bool(seen.reply)
        ),
        Stage((TRUE,), {"question": of_result("question")}, about=SAMPLE, blind=True),
    ),
    worth=1.0 + 4.0 * (pl.col("said").n_unique() > 1).cast(pl.Float64),
)


def results(samples: int, models: int = 2) -> pl.DataFrame:
    """Models that say of every third sample different things."""
    rows = [
        {
            "sample_hash": f"{n:064x}",
            "sample_id": f"s{n}",
            "cluster": f"s{n}",
            "model": f"m{m}",
            "judge": None,
            "judge_hash": None,
            "prompt_type": "direct",
            "replicate": 0,
            "prompt_hash": f"{1000 * m + n:064x}",
            "endpoint": "provider",
            "question": f"question {n}",
            "answer": f"answer {n}",
            "label": n % 2 == 0,
            "said": n % 2 == 0 if n % 3 else m == 0,
            "points": float(n % 20),
        }
        for n in range(samples)
        for m in range(models)
    ]
    return pl.DataFrame(rows, schema_overrides={"judge": pl.String, "judge_hash": pl.String})


def sheet(rows: pl.DataFrame, size: int, labels: pl.DataFrame | None = None) -> list[dict[str, Any]]:
    """The lines of a sheet about so many of these results, of which some may be labelled already."""
    calls = rows.select(*CALL_KEY, response=pl.lit("a reply"))
    samples = rows.select("sample_hash").unique()
    people = conform([], HUMAN_LABELS) if labels is None else labels
    tables = {SAMPLES.table: samples, CALLS.table: calls, HUMAN_LABELS.table: people}
    return [dict(line) for line in lines_to_fill_in(LABELLING, rows, tables, size, 1)]


def said(lines: list[dict[str, Any]], who: str = "ann", when: datetime = WHEN) -> pl.DataFrame:
    """The labels that a person gives by filled-in lines."""
    labels = read_labels(LABELLING, enumerate(lines, start=1), who, when)
    assert labels.refused == []
    return conform([{**row, "sample_id": "s"} for row in labels.rows], HUMAN_LABELS)
