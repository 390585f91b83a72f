"""What is read of a reply: the answer a reader would take, or why there is none."""

import pytest

from evalake.suites.declared.parts import Reply
from evalake.suites.declared.replies import read_answer
from tests.cases import cases_beside

CASES = cases_beside(__file__, "replies.json")


@pytest.mark.parametrize(("reply", "letter"), CASES["letters"])
def test_a_letter(reply: str, letter: str | None) -> None:
    read = read_answer(reply, Reply(read="choice"))
    assert read.text == letter
    assert (read.unreadable is None) == (letter is not None)


@pytest.mark.parametrize(("reply", "number"), CASES["numbers"])
def test_a_number(reply: str, number: float | None) -> None:
    assert read_answer(reply, Reply(read="number")).value == number


@pytest.mark.parametrize(("read", "reply", "answer"), CASES["cut_off"])
def test_a_reply_that_was_cut_off_has_the_answer_that_it_states(read: str, reply: str, answer: str | None) -> None:
    found = read_answer(reply, Reply.model_validate({"read": read}), is_cut=True)
    assert (found.text, found.unreadable) == (answer, "cut_off" if answer is None else None)


def test_a_line_a_pattern_and_a_text() -> None:
    assert read_answer("so:\n\n Paris \n", Reply(read="last_line")).text == "Paris"
    last = Reply(read="regex", pattern=r"final: (\w+)")
    assert read_answer("final: one\nfinal: two", last).text == "two"
    assert read_answer("nothing", last).unreadable == "no_regex"
    assert read_answer("<think>x</think> y ", Reply()).text == "y"
    assert read_answer(" \n", Reply()).unreadable == "empty"
    assert read_answer(None, Reply()).unreadable == "empty"


def test_json_by_its_form_is_read_leniently_and_strictly_in_what_it_means() -> None:
    scaled = Reply(read="json", form={"label": "spam|ham", "sure": "0.0..1.0"}, field="label")
    read = read_answer('Well:\n```json\n{"Label": "Spam", "sure": "0.5",}\n```', scaled)
    assert (read.text, read.unreadable) == ("Spam", None)
    assert read.mended
    assert read_answer('{"label": "eggs", "sure": 0.5}', scaled).unreadable == "no_label"
    assert read_answer("no JSON at all", scaled).unreadable == "no_json"
    assert read_answer('[{"a": [1, 2]}]', Reply(read="json", field="0.a.1")).unreadable is not None
    assert read_answer('{"a": [1, {"b": 2}]}', Reply(read="json", field="a.1.b")).value == 2
