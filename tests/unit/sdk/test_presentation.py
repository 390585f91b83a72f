"""How a suite is shown: lists, links, figures and rows of results."""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from pydantic import Field

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform, polars_schema
from evalake.core.errors import SourceError
from evalake.models.request import Failure, Reply
from evalake.reports.tables import KINDS
from evalake.sdk import Exchange, Item, Sample, Viewing, figures, results
from evalake.sdk.people import people_metrics
from evalake.sdk.results import read_recorded
from evalake.sdk.suite import MENTIONS, Roadmap
from evalake.storage.lake import Lake
from evalake.suites.registry import suite, suite_names
from evalake.suites.session_review.sources.read import STARTER as SESSIONS
from evalake.suites.solidity_audit.sources.read import STARTER
from tests.integration.admin.roadmap.scored import absent, land_scores

# How suites show their answers: by columns that their rows have, and in kinds that the viewer knows.


@pytest.mark.parametrize("name", suite_names())
def test_what_is_shown_are_columns_of_the_rows(name: str) -> None:
    of = suite(name)
    assert {column for column, _ in of.presentation.viewing.shown} <= of.results.column.keys()
    further = {column for contract in of.scoring.extra_tables for column in contract.column}
    assert {column for column, _ in of.presentation.viewing.details} <= further


@pytest.mark.parametrize("name", suite_names())
def test_expressions_are_over_result_rows_and_give_what_the_viewer_takes(name: str) -> None:
    viewing = suite(name).presentation.viewing
    rows = pl.DataFrame(schema=polars_schema(suite(name).results))
    kinds = {"verdict": pl.String, "correct": pl.Boolean, "error": pl.String}
    expressions = {what: getattr(viewing, what) for what in kinds}
    given = rows.select(**{what: each for what, each in expressions.items() if each is not None})
    assert dict(given.schema) == {what: kinds[what] for what in given.columns}
    assert set(rows.select(**viewing.flags).schema.values()) <= {pl.Boolean()}
    if viewing.score is not None:
        assert rows.select(viewing.score).dtypes[0].is_numeric()


@pytest.mark.parametrize("name", suite_names())
def test_every_sample_has_a_text_to_read_and_a_brief_one(name: str) -> None:
    of = suite(name)
    (sample, *_) = of.data.read(of.data.starter[0]).samples
    assert of.presentation.viewing.input_text(sample).strip()
    assert of.presentation.viewing.input_brief is None or of.presentation.viewing.input_brief(sample.input).strip()


def test_a_suite_that_says_nothing_shows_the_input_as_it_is() -> None:
    plain = Viewing()
    assert plain.input_text(Sample("quiz", "d", "s", "2 + 2?")) == "2 + 2?"
    assert (plain.verdict, plain.flags, plain.shown, plain.input_is_code) == (None, {}, (), False)


# Links out of a dataset reach no sample, whichever suite reads it; the rest of the dataset goes on.

KEY = "-----BEGIN OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXktdjEAAAAA"


def gtfobins(folder: Path, outside: Path) -> None:
    (folder / "_gtfobins").mkdir()
    (folder / "_gtfobins" / "good.md").write_text("---\nfunctions:\n  shell:\n  - code: good /bin/sh\n---\n")
    outside.write_text(f"---\nfunctions:\n  shell:\n  - code: {KEY}\n---\n")
    (folder / "_gtfobins" / "evil.md").symlink_to(outside)
    os.mkfifo(folder / "_gtfobins" / "pipe.md")


def pairs(folder: Path, outside: Path) -> None:
    shutil.copytree(STARTER / "pair_01", folder / "good")
    shutil.copytree(STARTER / "pair_02", folder / "evil")
    outside.write_text(f"contract Key {{ /* {KEY} */ }}")
    (folder / "evil" / "vulnerable.sol").unlink()
    (folder / "evil" / "vulnerable.sol").symlink_to(outside)


def sessions(folder: Path, outside: Path) -> None:
    body = sorted(SESSIONS.glob("*.json"))[0].read_text()
    (folder / "good.json").write_text(body)
    outside.write_text(json.dumps({**json.loads(body), "session_id": KEY}))
    (folder / "evil.json").symlink_to(outside)
    os.mkfifo(folder / "pipe.json")


@pytest.mark.parametrize(
    ("name", "make"), [("command_guard", gtfobins), ("solidity_audit", pairs), ("session_review", sessions)]
)
def test_a_link_out_of_a_dataset_is_left_out_counted_and_named(tmp_path: Path, name: str, make: object) -> None:
    (folder := tmp_path / "dataset").mkdir()
    make(folder, tmp_path / "outside")  # type: ignore[operator]
    dataset = suite(name).data.read(str(folder))
    assert dataset.samples
    assert KEY not in repr(dataset)
    reasons = {left.where: left.reason for left in dataset.skipped if "evil" in left.where}
    assert list(reasons.values()) == ["link that leads out of the dataset"]


# What suites declare of their reports names metrics, slices and columns that they have.


def needed(figure: figures.Figure) -> list[tuple[figures.Quantity, str]]:
    """Quantities of a figure, with the slice it wants of each."""
    match figure:
        case figures.Ranking():
            return [(quantity, "all") for quantity in (figure.quantity, *figure.columns)]
        case figures.Scatter():
            return [(figure.x, "all"), (figure.y, "all")]
        case figures.Bars():
            return [(quantity, "all") for quantity in figure.quantities]
        case figures.Reliability():
            return [(figure.accuracy, figure.slice), (figure.confidence, figure.slice)]
        case figures.ByJudge():
            return [(figure.quantity, "all")]
        case figures.Statistics():
            return [(quantity, "all") for quantity in figure.quantities]
        case figures.Decisions():
            return [(quantity, figure.slice) for quantity in figure.statistics]
        case figures.HeatMap() | figures.ByPart() | figures.AgreementMatrix():
            return [(figure.quantity, figure.slice)]


@pytest.mark.parametrize("name", suite_names())
def test_figures_name_metrics_of_their_suite(name: str) -> None:
    declared = suite(name)
    people = () if declared.people is None else people_metrics(declared.people)
    slices = {metric.name: metric.slices for metric in (*declared.all_metrics(declared.options), *people)}
    for figure in declared.presentation.figures:
        assert type(figure) in KINDS
        for quantity, part in needed(figure):
            if quantity.metric in slices or declared.metrics.across_rows is None:
                assert part in slices[quantity.metric], f"{figure.title} needs {quantity.metric} by {part}"


@pytest.mark.parametrize("name", suite_names())
def test_bars_with_colours_of_their_own_have_one_for_each_quantity(name: str) -> None:
    bars = [figure for figure in suite(name).presentation.figures if isinstance(figure, figures.Bars)]
    assert all(len(each.colours) in (0, len(each.quantities)) for each in bars)


@pytest.mark.parametrize("name", suite_names())
def test_answers_name_columns_of_the_results(name: str) -> None:
    declared = suite(name)
    columns: set[str] = set()
    if answers := declared.presentation.answers:
        columns = {*answers.sample, *(column for column, _ in answers.shown)}
        if answers.mistake is None:
            columns.add(answers.correct)
        columns |= {column for column in (answers.label, answers.group) if column is not None}
        if answers.reply_of is not None:
            columns = columns - {"reply_start"} | set(answers.reply_of.meta.root_names())
        if answers.mistake is not None:
            columns |= set(answers.mistake.meta.root_names())
    added = answers is not None and answers.add_columns is not None  # its own tests tell what they are
    assert added or columns <= declared.results.column.keys()


# Roadmaps as suites declare them: what is named has the columns of mentions, and each kind a way of grouping.

ROADMAPS = {name: roadmap for name in suite_names() if (roadmap := suite(name).roadmap) is not None}


@pytest.mark.parametrize("roadmap", ROADMAPS.values(), ids=ROADMAPS)
def test_what_is_named_is_told_with_its_sample_and_score(roadmap: Roadmap, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    land_scores(lake, ("a", 40, absent("heap-history")), ("b", 90, "No critical tools were missing."))
    tables = {contract.table: lake.frame(contract) for contract in roadmap.tables}
    mentions = roadmap.mentions(tables)
    assert mentions.schema == MENTIONS
    assert mentions.select("kind", "name", "sample_id", "score").rows() == [("absent", "heap-history", "a", 40.0)]
    assert roadmap.scored(tables) == 2


@pytest.mark.parametrize("roadmap", ROADMAPS.values(), ids=ROADMAPS)
def test_each_kind_that_is_grouped_by_meaning_is_measured_on_names_that_no_rule_was_chosen_by(roadmap: Roadmap) -> None:
    labelled = roadmap.labelled()
    assert {kind for kind, how in roadmap.kinds.items() if how.by_meaning} >= labelled.keys() > set()
    for names in labelled.values():
        assert any(each.held_out for each in names)
        assert len({each.theme for each in names}) < len(names)


@pytest.mark.parametrize("roadmap", ROADMAPS.values(), ids=ROADMAPS)
def test_without_a_table_nothing_is_named(roadmap: Roadmap, tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    tables = {contract.table: lake.frame(contract) for contract in roadmap.tables}
    assert roadmap.mentions(tables).is_empty()
    assert roadmap.scored(tables) == 0


# Result rows: the order of their columns, what fills them, and the rules that follow.

SAMPLE = Sample("quiz", "d", "s1", "?")
FIRST, SECOND = "ab" * 32, "cd" * 32


class Row(results.JudgedRow, results.ReplyColumns):
    """A quiz answer.

    More is said of it here.
    """

    stands_after: ClassVar[Mapping[str, str]] = {**results.JudgedRow.stands_after, "grade": ""}

    grade: int = Field(description="The grade.")


def answered(*outcomes: Reply | Failure) -> list[Exchange]:
    return [Exchange(prompt, outcome) for prompt, outcome in zip((FIRST, SECOND), outcomes, strict=False)]


def test_where_there_was_nothing_to_judge_a_hash_stands_in_for_the_judges() -> None:
    columns = results.identity_columns(Item(SAMPLE, "a/m", "a/j"), answered(Failure("timeout", "slow", 5)), "7")
    assert (columns["judge_hash"], columns["judge_cost_usd"]) == (results.unjudged_hash(FIRST, "a/j"), None)
    assert results.unjudged_hash(FIRST, "a/j") != results.unjudged_hash(FIRST, "a/k")


def test_replies_are_summed_and_one_unknown_makes_the_sum_unknown() -> None:
    first, second = (Reply("x", input_tokens=n, output_tokens=1, cost_usd=0.5) for n in (3, 4))
    both = results.reply_columns(first, second)
    assert (both["input_tokens"], both["output_tokens"], both["cost_usd"], both["latency_ms"]) == (7, 2, 1.0, None)
    assert results.reply_columns(first) == {**both, "input_tokens": 3, "output_tokens": 1, "cost_usd": 0.5}
    assert results.reply_columns() == dict.fromkeys(results.ReplyColumns.model_fields)
    assert results.reply_columns(first, Reply("x"))["input_tokens"] is None


GOOD: dict[str, Any] = {
    **results.identity_columns(Item(SAMPLE, "a/m", "a/j"), answered(Reply("4"), Reply("right")), "7"),
    **results.reply_columns(Reply("4", input_tokens=3, cached_input_tokens=1, output_tokens=2, reasoning_tokens=1)),
    "landed_by_run": "r",
    "origin": "call",
    "grade": 1,
}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({}, None),
        ({"judge_hash": "x"}, "judge_hash_is_sha256"),
        ({"model": " "}, "model_not_blank"),
        ({"judge": ""}, "judge_not_blank"),
        ({"replicate": -1}, "replicate_not_negative"),
        ({"judge_cost_usd": -0.5}, "judge_cost_usd_not_negative"),
        ({"latency_ms": -1.0}, "latency_ms_not_negative"),
    ],
)
def test_the_rules_of_the_shared_columns_come_by_themselves(change: dict[str, Any], rule: str | None) -> None:
    contract = results.result_contract("quiz_results", Row)
    audited = audit(conform([GOOD | change], contract), contract)
    assert audited.bad["broken"].to_list() == ([] if rule is None else [[rule]])


def test_more_tokens_in_a_part_than_in_the_whole_are_warned_of() -> None:
    contract = results.result_contract("quiz_results", Row)
    row = GOOD | {"cached_input_tokens": 4, "reasoning_tokens": 3}
    failed = {each.rule_id for each in audit(conform([row], contract), contract).results if not each.passed}
    assert failed == {"cached_within_input", "reasoning_in_output"}


def test_the_key_tells_judges_apart_where_there_are_any() -> None:
    class Plain(results.ResultRow):
        """A plain answer."""

    judged, plain = results.result_contract("a", Row), results.result_contract("b", Plain)
    subject, rest = ("prompt_hash", "endpoint", "sample_hash", "model"), ("replicate", "scorer_version")
    assert judged.key == (*subject, "judge", "judge_hash", "judge_endpoint", *rest)
    assert plain.key == (*subject, *rest)
    assert (judged.partition_by, judged.description) == (("model",), "A quiz answer.")


# Recorded results as any suite imports them: what a line becomes, and how a bad one is named.

LINE: dict[str, Any] = {
    "dataset": "d",
    "sample_id": "s1",
    "input": "What is 2 + 2?",
    "target": {"answer": 4},
    "label": "easy",
    "model": "a/model",
    "replicate": 1,
    "replies": [{"text": "4", "finish_reason": "stop", "input_tokens": 7, "latency_ms": 1.5}],
}
JUDGED = {**LINE, "judge": "a/judge", "replies": [{"text": "4"}, {"text": "right"}]}


def read(line: dict[str, Any], *, is_judged: bool = False) -> Any:
    return read_recorded("quiz", line, is_judged=is_judged)


def test_a_line_is_a_sample_who_was_asked_and_what_was_answered() -> None:
    recorded = read(LINE)
    sample = recorded.item.sample
    assert (sample.suite, sample.dataset, sample.sample_id, sample.input) == ("quiz", "d", "s1", "What is 2 + 2?")
    assert (sample.target, sample.label, sample.category) == ('{"answer":4}', "easy", None)
    assert (recorded.item.model, recorded.item.judge, recorded.item.replicate) == ("a/model", None, 1)
    assert recorded.replies == (Reply("4", "stop", input_tokens=7, latency_ms=1.5),)
    assert read(LINE | {"expected_answer": 4}) == recorded


def test_what_was_asked_has_a_hash_of_its_own_for_model_and_judge() -> None:
    recorded = read(JUDGED, is_judged=True)
    assert len({*recorded.prompt_hashes}) == 2
    other = read(JUDGED | {"judge": "another/judge"}, is_judged=True)
    assert other.prompt_hashes[0] == recorded.prompt_hashes[0], "the model's answer is the same, whoever judged it"
    assert other.prompt_hashes[1] != recorded.prompt_hashes[1]
    assert read(JUDGED | {"replicate": 2}, is_judged=True).prompt_hashes == recorded.prompt_hashes


def test_text_that_no_table_can_hold_becomes_storable() -> None:
    (reply,) = read(LINE | {"replies": [{"text": "a\ud800"}]}).replies
    assert reply.text == "a?"
    assert read(LINE | {"target": ["a\ud800"]}).item.sample.target == '["a?"]'


@pytest.mark.parametrize(
    ("change", "is_judged", "message"),
    [
        ({"model": None}, False, "model: Input should be a valid string"),
        ({"input": " "}, False, "input: blank"),
        ({"colour": 1}, False, "unknown field 'colour'"),
        ({"replies": []}, False, "replies: List should have at least 1 item"),
        ({"replies": [{"text": "4", "latency_ms": -1}]}, False, "replies.0.latency_ms: "),
        ({"replies": [{}]}, False, "replies.0.text: Field required"),
        ({"replicate": -1}, False, "replicate: "),
        ({"target": float("nan")}, False, "holds a number that is not finite"),
        ({"judge": "a/judge"}, False, "judge: quiz is judged by rules, and has none"),
        ({}, True, "judge: quiz needs one"),
        ({"judge": "a/judge"}, True, "replies: the first is the model's, and the judge's are missing"),
    ],
)
def test_a_bad_line_is_refused_by_the_name_of_its_field(change: dict[str, Any], is_judged: bool, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(LINE | change, is_judged=is_judged)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
