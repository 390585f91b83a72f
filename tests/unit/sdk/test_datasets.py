"""Datasets: how they are built and described; classes and canaries."""

import hashlib
from dataclasses import fields, replace
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import SAMPLES
from evalake.core.errors import ContractError, SourceError, UsageError
from evalake.metrics.compute import Metric, measure
from evalake.metrics.estimators import Total
from evalake.sdk import Dataset, JudgedRow, ReplyColumns, ResultRow, Sample, Skipped, result_contract
from evalake.sdk.dataset import DatasetBuilder, read_whole
from evalake.sdk.suite import usage_metrics
from evalake.sdk.tabular import TwoClasses
from evalake.suites.registry import canary_items, canary_suites, suite, suite_names
from evalake.suites.solidity_audit.truth import truth_of
from tests.cases import cases_beside

CASES = cases_beside(__file__, "datasets.json")

# A dataset in the making: what is taken in order, what is left out for a reason, and a source that gives nothing.


def test_a_source_that_gives_no_sample_is_named_with_what_it_held_instead() -> None:
    builder = DatasetBuilder("mine")
    builder.skip("line 1", "no question", "{}")
    builder.skip("line 2", "no question", "{}")
    with pytest.raises(SourceError, match=r"'q.jsonl' holds no question \(2 x no question\)"):
        read_whole("q.jsonl", builder.result, "question")
    with pytest.raises(SourceError, match=r"holds no question \(it is empty\)"):
        read_whole("q.jsonl", DatasetBuilder("mine").result, "question")
    assert read_whole("q.jsonl", builder.result, "question", may_be_empty=True).samples == ()


def test_a_source_that_cannot_be_read_is_named_in_words(tmp_path: Path) -> None:
    def read() -> Dataset:
        (tmp_path / "nowhere").read_text()
        raise AssertionError

    with pytest.raises(SourceError, match="cannot read the dataset source 'nowhere': No such file or directory"):
        read_whole("nowhere", read, "question")


# Samples are told apart by all that defines them, and a dataset by its samples in order.

SAMPLE = Sample("quiz", "d", "s1", "?")
DEFINING = [field.name for field in fields(Sample) if field.name != "note"]


@pytest.mark.parametrize("name", DEFINING)
def test_whatever_is_changed_of_it_makes_it_another_sample(name: str) -> None:
    assert replace(SAMPLE, **{name: "changed"}).sample_hash != SAMPLE.sample_hash


def test_a_note_is_no_part_of_it() -> None:
    assert replace(SAMPLE, note="why").sample_hash == SAMPLE.sample_hash


def test_the_hash_is_what_lakes_have() -> None:
    assert SAMPLE.sample_hash == "914d5c259b9c17378436b6e2e0d179b26634145a36fe1a89fd623438615f9d7e"


def test_nothing_is_not_the_empty_text() -> None:
    assert replace(SAMPLE, label="").sample_hash != SAMPLE.sample_hash


def test_a_dataset_has_another_version_where_its_samples_are_others_or_in_another_order() -> None:
    other = replace(SAMPLE, sample_id="s2")
    versions = [Dataset("d", samples).version for samples in ((SAMPLE, other), (other, SAMPLE), (SAMPLE,), ())]
    assert len(set(versions)) == len(versions)
    assert Dataset("another", (SAMPLE,), (Skipped("x", "y"),)).version == versions[2], "its name and gaps are no part"


# What the values of a label column mean: by their words, by the column's name, or by a mapping, and else refused.

CLASSES = TwoClasses(
    "label",
    "malicious",
    "harmless",
    words={"bad": "malicious", "good": "harmless"},
    truths={"malicious": "malicious", "bad": "malicious", "safe": "harmless"},
)


@pytest.mark.parametrize(("column", "values", "meanings", "classes"), CASES["classes"])
def test_each_value_is_a_class(
    column: str, values: list[str], meanings: dict[str, str | None] | None, classes: list[str]
) -> None:
    understood, _ = CLASSES.understand("set.csv", column, values, meanings)
    assert [understood[value] for value in values] == classes


@pytest.mark.parametrize(("column", "values", "meanings", "words"), CASES["refused"])
def test_what_is_not_understood_is_refused_with_what_was_found(
    column: str, values: list[str], meanings: dict[str, str | None] | None, words: str
) -> None:
    with pytest.raises(SourceError) as caught:
        CLASSES.understand("set.csv", column, values, meanings)
    assert words in str(caught.value)


def test_what_was_understood_is_said_where_it_is_not_plain() -> None:
    assert CLASSES.understand("set.csv", "label", ["harmless"], None)[1] is None
    said = CLASSES.understand("set.csv", "bad", ["1", "0", "1"], None)[1]
    assert said == "label from the column 'bad': '1' is malicious (2), '0' is harmless (1)"


# A suite as one object: what it must have, and what follows from what it has.


def test_a_suite_whose_rows_could_not_be_found_again_is_none() -> None:
    found = suite("command_guard")
    with pytest.raises(ContractError, match=r"the table samples has no endpoint, landed_by_run, model, origin"):
        replace(found.scoring, results=SAMPLES)


def test_metrics_of_usage_come_by_themselves_but_for_those_that_a_suite_declares() -> None:
    found = suite("command_guard")
    mine = Metric("output_tokens", Total(pl.col("output_tokens") * 2))
    declared = replace(found, metrics=replace(found.metrics, own=lambda options: (mine,)))
    metrics = {metric.name: metric for metric in declared.all_metrics({})}
    assert {*metrics} == {"output_tokens", "input_tokens", "cost_usd_total"}
    assert metrics["output_tokens"] is mine


def test_a_judged_suite_is_known_by_its_rows() -> None:
    assert [suite(name).is_judged for name in ("command_guard", "solidity_audit", "session_review")] == [
        False, True, True
    ]  # fmt: skip
    for name in suite_names():
        found = suite(name)
        assert found.contracts == (found.results, *found.scoring.extra_tables)


def test_recorded_lines_are_read_as_the_suite_says_or_in_the_form_of_all_suites() -> None:
    line = {"dataset": "d", "sample_id": "s", "input": "ls", "model": "a/m", "replies": [{"text": "hello"}]}
    found = suite("command_guard")
    plain = replace(found, data=replace(found.data, read_recorded=None))
    assert plain.recorded(line).item.sample.input == "ls"
    with pytest.raises(SourceError, match="command"):
        found.recorded(line)


class Plain(ResultRow):
    """An answer without what it took."""


class Measured(ResultRow, ReplyColumns):
    """An answer with what it took."""


class Judged(JudgedRow, ReplyColumns):
    """An answer that a judge was paid for, too."""


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (Plain, set()),
        (Measured, {"cost_usd_total", "input_tokens", "output_tokens"}),
        (Judged, {"cost_usd_total", "input_tokens", "output_tokens"}),
    ],
)
def test_there_are_those_whose_columns_there_are(row: type[ResultRow], names: set[str]) -> None:
    assert {metric.name for metric in usage_metrics(result_contract("quiz_results", row), ())} == names


@pytest.mark.parametrize(("judge_costs", "total"), [((0.5, 0.25), 3.75), ((0.5, None), None)])
def test_a_judge_is_paid_for_too_and_an_unknown_price_makes_the_total_unknown(
    judge_costs: tuple[float | None, ...], total: float | None
) -> None:
    frame = pl.DataFrame(
        {"model": ["m"] * 2, "judge": ["j"] * 2, "cost_usd": [1.0, 2.0], "judge_cost_usd": judge_costs,
         "input_tokens": [1, 2], "output_tokens": [3, None]}
    )  # fmt: skip
    metrics = tuple(usage_metrics(result_contract("quiz_results", Judged), ()))
    values = dict(measure(frame, metrics).select("metric", "value").iter_rows())
    assert values == {"cost_usd_total": total, "input_tokens": 3.0, "output_tokens": None}


# Frozen items: they are what they were, a suite can judge each of them, and every kind of answer is among them.

SUITES = Path(__file__).resolve().parents[3] / "evalake" / "suites"

# Who changes an item on purpose changes the digest, too: every judge's canary then begins with new answers.
DIGESTS = {
    "session_review": "e68cc936464ef1cb6feb7604b66396a0c071efa5f82e51934815b7c8f9b5837b",
    "solidity_audit": "ba70424d9a92916a6e74dd7d6a42e01b6564e277586b6892346bb6c9915cd152",
}


def test_they_are_what_they_were() -> None:
    files = {name: hashlib.sha256((SUITES / name / "canary.jsonl").read_bytes()).hexdigest() for name in DIGESTS}
    assert files == DIGESTS
    assert set(canary_suites()) >= DIGESTS.keys()


@pytest.mark.parametrize("name", DIGESTS)
def test_the_next_request_about_each_is_to_the_judge(name: str) -> None:
    of = suite(name)
    items = canary_items(name, "provider/judge", 7)
    requests = [of.conversation.next_request(item, answered, of.options) for item, answered in items]
    assert {request.model for request in requests if request} == {"provider/judge"}
    assert len({request.prompt_hash for request in requests if request}) == len(items)
    assert {item.replicate for item, _ in items} == {7}


def test_audits_right_and_wrong_of_vulnerable_and_safe_contracts() -> None:
    items = canary_items("solidity_audit", "provider/judge", 0)
    vulnerable = [truth_of(item.sample).is_vulnerable for item, _ in items]
    assert (len(items), sum(vulnerable)) == (24, 18)
    assert len({item.sample.cluster for item, _ in items}) == len(items)  # no two twins


def test_a_suite_without_frozen_items_is_named() -> None:
    with pytest.raises(UsageError, match="command_guard has no frozen items"):
        canary_items("command_guard", "provider/judge", 0)
