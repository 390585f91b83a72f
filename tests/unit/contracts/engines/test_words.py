"""Every rule is said in one plain phrase."""

from evalake.contracts.engines.sql import describe
from evalake.contracts.rule import Kind, Rule
from tests.unit.contracts.examples import EXAMPLE


def test_every_rule_can_be_said_in_words() -> None:
    words = {rule.id: describe(rule) for rule in EXAMPLE.all_rules}
    assert words["needed_present"] == "needed is not null"
    assert words["text_not_blank"] == "text holds more than white space"
    assert words["number_finite"] == "number is a finite number"
    assert words["count_between"] == "count is between 0 and 10"
    assert words["ceiling_between"] == "ceiling is at most 3"
    assert words["code_matches"] == "code is of the form [0-9a-f]{2}(?:-.+)?"
    assert words["low_not_above"] == "low is not above high"
    assert words["reason_present"] == 'reason is not null where state is failed or it\'s or say "x"'
    assert words["error_absent"] == "error is null where flag is true"
    assert words["items_empty"] == "items is an empty list"
    assert words["key_unique"] == "no two rows agree in name"
    assert words["rows"] == "the number of rows is between 1 and 1000"
    assert words["failed_share"] == "in no word do more than 50% of the rows say that state is failed"
    assert len(set(words.values())) == len(words)


def test_truth_values_are_written_in_small_letters() -> None:
    rule = Rule("there", "reason", Kind.PRESENT_WHEN, {"other": "flag", "values": (True, False)})
    assert describe(rule) == "reason is not null where flag is true or false"
