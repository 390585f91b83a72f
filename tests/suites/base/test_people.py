"""What a suite declares becomes sheets, forms and agreement, each answer weighed by what it stands for."""

from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from contracts.compile.arrow import conform
from contracts.tables import CALLS, HUMAN_LABELS, SAMPLES
from suites.base import Labelling, Question, Stage
from suites.base.labelling import ANSWER, LABEL, SAMPLE, YES_NO, of_result, yes_no
from suites.base.people import decisions, measure_people, pairs_with_people, people_metrics, with_people
from suites.base.sheet_answers import questions_about, read_labels
from suites.base.sheet_lines import lines_to_fill_in

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
    calls = rows.select("prompt_hash", "replicate", response=pl.lit("a reply"))
    samples = rows.select("sample_hash").unique()
    people = conform([], HUMAN_LABELS) if labels is None else labels
    tables = {SAMPLES.table: samples, CALLS.table: calls, HUMAN_LABELS.table: people}
    return [dict(line) for line in lines_to_fill_in(LABELLING, rows, tables, size, 1)]


def said(lines: list[dict[str, Any]], who: str = "ann", when: datetime = WHEN) -> pl.DataFrame:
    labels = read_labels(LABELLING, enumerate(lines, start=1), who, when)
    assert labels.refused == []
    return conform([{**row, "sample_id": "s"} for row in labels.rows], HUMAN_LABELS)


def test_blind_lines_come_first_and_an_answer_is_drawn_at_random_beside_its_chance() -> None:
    lines = sheet(results(30), 10)
    blind, rest = lines[:10], lines[10:]
    assert {line["fill_in"] for line in blind} == {"true"}
    assert {line["fill_in"] for line in rest} == {"p"}
    assert all(line["answer"] is None for line in blind)
    assert [line["sample_hash"] for line in blind] == [line["sample_hash"] for line in rest]
    assert {line["model"] for line in rest} == {"m0", "m1"}
    for one, other in zip(blind, rest, strict=True):
        assert other["inclusion_probability"] == pytest.approx(one["inclusion_probability"] / 2)
    assert len({line["draw"] for line in lines}) == 1
    assert sheet(results(30), 10) == lines


def test_what_was_labelled_is_not_drawn_again_and_what_differs_is_rather_drawn() -> None:
    rows = results(30)
    labels = said([line | {"true": "yes"} for line in sheet(rows, 10) if line["fill_in"] == "true"])
    again = {line["sample_hash"] for line in sheet(rows, 30, labels)}
    assert len(again) == 20
    assert not again & {*labels["sample_hash"]}
    chances = {line["sample_hash"]: line["inclusion_probability"] for line in sheet(rows, 10) if line["p"] is None}
    assert len({round(chance, 6) for chance in chances.values()}) == 2


def test_a_form_asks_what_the_stage_asks() -> None:
    points, true = (questions_about(LABELLING, line) for line in ({"fill_in": "p"}, {"fill_in": "true"}))
    assert list(points.model_fields) == ["p", "note"]
    assert points.model_validate({"p": 20})
    with pytest.raises(ValidationError):
        points.model_validate({"p": 20.5})
    assert list(true.model_fields) == ["true", "note"]
    with pytest.raises(ValidationError):
        true.model_validate({"true": "perhaps"})


def test_a_word_on_a_sample_counts_for_all_of_its_answers_and_the_majority_for_the_metrics() -> None:
    rows = results(4)
    lines = [line for line in sheet(rows, 4) if line["fill_in"] == "true"]
    words = {"ann": "yes", "bob": "yes", "eve": "no"}
    labels = pl.concat([said([line | {"true": word} for line in lines], who) for who, word in words.items()])
    tied = labels.filter((pl.col("annotator") != "bob") | (pl.col("sample_hash") != f"{3:064x}"))
    joined = with_people(rows.lazy(), tied.lazy(), LABELLING).collect().sort("sample_hash", "model")
    assert joined["human_true"].to_list() == [*["yes"] * 6, None, None]
    assert joined["human_points"].null_count() == 8
    measured = measure_people(joined, LABELLING).filter(model="m0")
    values = {row["metric"]: (row["value"], row["n"]) for row in measured.to_dicts()}
    assert values["model_human_agreement_true"] == (pytest.approx(2 / 3), 3)
    assert not any("points" in name for name in values), "nobody gave any"
    assert {metric.name for metric in people_metrics(LABELLING)} > values.keys()

    pairs = pairs_with_people(rows, labels, LABELLING)
    assert pairs.filter(judge="label").height == 4 * 3, "once a sample and person, however many models"
    assert pairs.filter(judge="m1").height == 4 * 3
    assert decisions(LABELLING) == ("points", "true")


def test_numbers_near_each_other_agree_and_a_later_word_takes_the_earlier_ones_place() -> None:
    rows = results(20, models=1)
    lines = [line for line in sheet(rows, 20) if line["fill_in"] == "p"]
    number = {f"{n:064x}": n for n in range(20)}
    early = said([line | {"p": "0"} for line in lines])
    late = said(
        [
            line | {"p": number[line["sample_hash"]] + (2 if n else 3)}
            for n, line in enumerate(lines)
            if number[line["sample_hash"]] < 17
        ],
        when=WHEN.replace(day=2),
    )
    labels = pl.concat([early.filter(~pl.col("label_id").is_in(late["label_id"].implode())), late])
    pairs = pairs_with_people(rows, labels.filter(pl.col("labelled_at") > WHEN), LABELLING)
    assert pairs.height == 17
    assert pairs["agrees"].sum() == 16, "two of twenty is near, three is not"
    assert (pairs["second_score"] - pairs["first_score"]).max() == 3
    assert ANSWER[0] == SAMPLE[0]
