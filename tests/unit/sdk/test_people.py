"""People's answers beside results: how they join, and agreement weighed by what each answer stands for."""

from dataclasses import replace

import polars as pl
import pytest

from evalake.sdk import Stage
from evalake.sdk.people import ANSWER, SAMPLE, decisions, measure_people, pairs_with_people, people_metrics, with_people
from tests.unit.sdk.quiz import LABELLING, WHEN, results, said, sheet


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


def test_stages_add_to_the_plan_what_each_adds_alone() -> None:
    """Nested in one another they took seconds and hundreds of threads."""
    rows = results(2).lazy()

    def added(*stages: Stage) -> int:
        plan = with_people(rows, said([]).lazy(), replace(LABELLING, stages=stages))
        return plan.explain(optimized=False).count("DF [") - 1

    assert added(*LABELLING.stages) == sum(added(stage) for stage in LABELLING.stages) > 0


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
