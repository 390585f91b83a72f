"""People's labels: sheets, their lines and answers, and what is measured by them."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import HUMAN_LABELS
from evalake.core.errors import SourceError
from evalake.metrics.agreement import PAIRS
from evalake.models.request import Reply
from evalake.sdk import Exchange, Labelling, Labels, Question, Refusal, Stage
from evalake.sdk.people import ANSWER, SAMPLE, decisions, measure_people, pairs_with_people, people_metrics, with_people
from evalake.sdk.sheets import LONGEST_TEXT, SheetFormat, candidates, read_labels, read_sheet, write_sheet
from evalake.suites.registry import suite, suite_names
from tests.cases import cases_beside
from tests.unit.sdk.quiz import LABELLING, WHEN, results, said, sheet

CASES = cases_beside(__file__, "lines.json")

# Labelling as a suite declares it: headings, what is shown, and answers in the words of the questions.

LABELLED = [(name, labelling) for name in suite_names() if (labelling := suite(name).people) is not None]


@pytest.mark.parametrize(("near", "most", "tolerance"), [(None, 20.0, 2.0), (0.25, 1.0, 0.25), (0.0, 5.0, 0.0)])
def test_numbers_agree_within_a_tenth_of_the_most_unless_it_is_said(
    near: float | None, most: float, tolerance: float
) -> None:
    assert Question("q", "?", most=most, near=near).tolerance == tolerance


@pytest.mark.parametrize(("name", "labelling"), LABELLED, ids=[name for name, _ in LABELLED])
def test_what_a_suite_asks_has_a_column_each_that_no_text_has(name: str, labelling: Labelling) -> None:
    headings = [question.heading for question in labelling.questions]
    assert labelling.suite == name
    assert len(set(headings)) == len(headings)
    assert not set(headings) & set(labelling.material)
    assert all(question.title.endswith("?") for question in labelling.questions)


@pytest.mark.parametrize(("name", "labelling"), LABELLED, ids=[name for name, _ in LABELLED])
def test_answers_are_told_from_columns_of_the_results(name: str, labelling: Labelling) -> None:
    results = pl.DataFrame(schema=dict.fromkeys(suite(name).results.column, pl.Null))
    stages: list[Stage] = [stage for stage in labelling.stages if stage.each is None]
    for question in (question for stage in stages for question in stage.questions):
        for answer in question.told.values():
            assert {*answer.meta.root_names()} <= {*results.columns}


# Sheets go out and come back whole, run nothing in a spreadsheet, and tell what cannot be read.

NO_SURROGATES = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
CELLS = st.text(alphabet=NO_SURROGATES, min_size=1, max_size=12)
TRICKY = st.text(alphabet="=+-@'\",;\t\r\n \u2028a", min_size=1, max_size=6)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@given(st.lists(st.tuples(CELLS | TRICKY, CELLS | TRICKY), min_size=1, max_size=5))
def test_what_is_written_is_read_again(form: SheetFormat, cells: list[tuple[str, str]]) -> None:
    lines = [{"first": first, "second": second} for first, second in cells]
    read = list(read_sheet(write_sheet(lines, ("first", "second"), form), form, ("first",)))
    assert [line for _, line in read] == lines


def test_lines_have_their_numbers_and_one_that_cannot_be_read_says_why() -> None:
    table = list(read_sheet('\ufeffa,b\n1,2\n\n3\n"4\n",5\n', "csv", ("a",)))
    assert table == [
        (2, {"a": "1", "b": "2"}),
        (4, "it has more or fewer cells than columns"),
        (6, {"a": "4\n", "b": "5"}),
    ]
    lines = list(read_sheet('{"a": 1}\n\nnonsense\n[1]\n' + "[" * 100_000, "jsonl", ()))
    told: list[tuple[int, Any]] = [
        (1, {"a": 1}), (3, "it is not JSON"), (4, "it is not a JSON object"), (5, "it is not JSON")
    ]  # fmt: skip
    assert lines == told


def test_an_answer_that_is_given_twice_is_refused() -> None:
    (line,) = read_sheet('{"a": 1, "answer": "yes", "answer": "no"}', "jsonl", ())
    assert line == (1, "it names 'answer' twice in one object")
    with pytest.raises(SourceError, match="two columns named 'answer'"):
        list(read_sheet("a,answer,answer\n1,yes,no\n", "csv", ("a",)))


def test_a_table_that_breaks_off_is_named_by_its_line() -> None:
    with pytest.raises(SourceError, match="cannot be read as CSV in line 2"):
        list(read_sheet('a,b\n"1"x,2\n', "csv", ("a",)))


# The lines of a sheet: which results are drawn, in which order, and what they show.


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


def test_a_text_is_as_long_as_a_cell_of_a_spreadsheet() -> None:
    rows = results(1, models=1).with_columns(question=pl.lit("x" * (LONGEST_TEXT + 1)))
    question = sheet(rows, 1)[0]["question"]
    assert question == "x" * LONGEST_TEXT + "\n[…]"


def test_what_is_not_counted_is_not_drawn_and_labels_of_another_suite_are_none_of_this() -> None:
    rows = results(4)
    only = replace(LABELLING, counted=pl.col("label"))
    nobody = conform([], HUMAN_LABELS)
    assert candidates(only, rows, nobody).height == 2
    labels = said([line | {"true": "yes"} for line in sheet(rows, 4) if line["fill_in"] == "true"])
    assert candidates(LABELLING, rows, labels).is_empty()
    assert candidates(LABELLING, rows, labels.with_columns(suite=pl.lit("other"))).height == 4


# What people wrote into a sheet or a form: rows of labels, and refusals that say what to write.

LINE: dict[str, Any] = next(line for line in sheet(results(1, models=1), 1) if line["fill_in"] == "p")


def read(line: dict[str, Any] | str, annotator: str = "ann") -> Labels:
    return read_labels(LABELLING, [(7, line)], annotator, WHEN)


def test_an_answer_is_a_label_with_what_it_is_about_and_who_gave_it() -> None:
    (row,) = read(LINE | {"p": "12,5", "note": " good ", "annotator": "bob"}).rows
    assert (row["question"], row["score"], row["answer"], row["note"]) == ("points", 12.5, None, "good")
    assert (row["annotator"], row["suite"], row["model"], row["labelled_at"]) == ("bob", "quiz", "m0", WHEN)
    (former,) = read(LINE | {"p": 1, "labeller": "eve"}).rows
    assert former["annotator"] == "eve"


@pytest.mark.parametrize("word", ["yes", "Yes ", "TRUE", "1", True])
def test_yes_may_be_written_in_several_ways(word: Any) -> None:
    (row,) = read(LINE | {"true": word}).rows
    assert (row["question"], row["answer"]) == ("true", "yes")


@pytest.mark.parametrize("nothing", [None, "", "  "])
def test_a_line_that_nobody_filled_in_is_counted(nothing: Any) -> None:
    labels = read(LINE | {"p": nothing, "note": "only a note"})
    assert (labels.rows, labels.refused, labels.empty) == ([], [], 1)


@pytest.mark.parametrize(("change", "reason"), CASES["refused"])
def test_a_bad_line_is_refused_with_its_number_and_what_to_write(change: dict[str, Any], reason: str) -> None:
    labels = read(LINE | change)
    assert labels.rows == []
    assert labels.refused == [Refusal("line 7", reason)]


def test_a_word_is_one_of_those_to_choose_from() -> None:
    choice = Labelling("quiz", (Stage((Question("kind", "Which?", ("GOOD", "BAD")),), {}),))
    (row,) = read_labels(choice, [(1, LINE | {"kind": "good"})], "ann", WHEN).rows
    assert row["answer"] == "GOOD"
    (refused,) = read_labels(choice, [(1, LINE | {"kind": "so so"})], "ann", WHEN).refused
    assert refused.reason == "kind is 'so so': write one of GOOD, BAD"


# People's answers beside results: how they join, and agreement weighed by what each answer stands for.


def test_a_word_on_a_sample_counts_for_all_of_its_answers_and_the_majority_for_the_metrics() -> None:
    rows = results(4)
    lines = [line for line in sheet(rows, 4) if line["fill_in"] == "true"]
    words = {"ann": "yes", "bob": "yes", "eve": "no"}
    labels = pl.concat([said([line | {"true": word} for line in lines], who) for who, word in words.items()])
    tied = labels.filter((pl.col("annotator") != "bob") | (pl.col("sample_hash") != f"{3:064x}"))
    joined = with_people(rows.lazy(), tied.lazy(), LABELLING).collect().sort("sample_hash", "model")
    assert joined["human_true"].to_list() == [*["yes"] * 6, None, None]
    assert joined["human_points"].null_count() == 8
    measured = measure_people(joined.lazy(), LABELLING).filter(model="m0")
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


# Known judgements: a judge is asked about each next, and what it says stands beside what is known.

CALIBRATED = [name for name in suite_names() if suite(name).calibration is not None]


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_judge_is_asked_next_and_compared_with_what_is_known(name: str) -> None:
    of = suite(name)
    assert of.calibration is not None
    judge = of.conversation.default_judges[0]
    complete = []
    for item, answered in list(of.calibration.items(judge))[:3]:
        assert item.judge == judge
        request = of.conversation.next_request(item, answered, of.options)
        assert request is not None
        assert request.model == judge, "what comes before the judge's turn is answered already"
        reply = Reply(of.conversation.baselines[judge.removeprefix("baseline/")](request.messages))
        complete.append((item, [*answered, Exchange(request.prompt_hash, reply)]))
    pairs = of.calibration.compare(complete)
    assert set(PAIRS) <= {*pairs.columns}
    assert pairs["decision"].n_unique() > 0
    assert {*pairs["decision"]} <= {*of.calibration.decisions}


@pytest.mark.parametrize("name", CALIBRATED)
def test_each_item_is_another_one(name: str) -> None:
    calibration = suite(name).calibration
    assert calibration is not None
    asked = [
        (item.sample.sample_hash, item.replicate, *(exchange.prompt_hash for exchange in answered))
        for item, answered in calibration.items("a/judge")
    ]
    assert len(set(asked)) == len(asked) > 0
