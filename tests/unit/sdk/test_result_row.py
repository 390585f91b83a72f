"""Result rows: the order of their columns, what fills them, and the rules that follow."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from pydantic import Field

from evalake.contracts.audit import audit
from evalake.contracts.engines.arrow import conform
from evalake.models.request import Failure, Reply
from evalake.sdk import Exchange, Item, Sample, results

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
