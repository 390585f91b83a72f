"""Prompts that a configuration adds: how each suite asks with them, and what it refuses."""

from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest

from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError
from evalake.metrics.estimators import Rate
from evalake.models.request import Request
from evalake.sdk import Item, Suite
from evalake.sdk.suite import read_examples
from evalake.suites.command_guard.baselines import command_of
from evalake.suites.registry import suite as find_suite
from evalake.suites.registry import suite_names
from evalake.suites.session_review.prompts import criteria_hash, criteria_hash_of
from evalake.tasks.runtime.context import options_of

OWN: Mapping[str, Mapping[str, str]] = {
    "command_guard": {"system": "Guard this.", "examples": '{"input": "ls", "reply": "allow it"}\n\n'},
    "solidity_audit": {"user": "Is it safe?", "examples": '{"input": "contract A {}", "reply": "yes"}'},
    "session_review": {"system": "Be strict."},
}


def options(name: str, parts: Mapping[str, str], called: str = "mine") -> Mapping[str, Any]:
    return options_of(find_suite(name), Configuration(suites={name: {"prompts": {called: dict(parts)}}}))


def first_request(suite: Suite, given: Mapping[str, Any], prompt_type: str) -> Request:
    sample = suite.data.read("starter").samples[0]
    request = suite.conversation.next_request(Item(sample, "a/model", "a/judge", prompt_type), (), given)
    assert request is not None
    return request


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_asks_with_the_texts_and_these_are_in_the_hash(name: str) -> None:
    suite, parts = find_suite(name), OWN[name]
    request = first_request(suite, options(name, parts), "mine")
    told = "".join(message["content"] for message in request.messages)
    assert all(text in told for part, text in parts.items() if part != "examples")
    assert request.messages[0]["role"] == "system"
    assert len(request.messages) == (4 if "examples" in parts else 2)
    built_in = first_request(suite, options(name, parts), suite.prompts.types[0])
    assert built_in == first_request(suite, suite.options, suite.prompts.types[0]), "its own prompts are as they were"
    changed = first_request(suite, options(name, {**parts, "system": "Another."}), "mine")
    assert len({built_in.prompt_hash, request.prompt_hash, changed.prompt_hash}) == 3


def test_examples_are_asked_as_the_question_is() -> None:
    name = "command_guard"
    request = first_request(find_suite(name), options(name, OWN[name]), "mine")
    _, asked, answered, question = request.messages
    assert command_of([asked]) == "ls"
    assert answered == {"role": "assistant", "content": "allow it"}
    assert command_of([question]) == find_suite(name).data.read("starter").samples[0].input
    assert asked["content"].partition("<<<")[0] == question["content"].partition("<<<")[0]


@pytest.mark.parametrize(
    "line",
    [
        "no JSON",
        "[]",
        '{"input": "ls"}',
        '{"input": "", "reply": "x"}',
        '{"input": "ls", "reply": 3}',
        '{"input": "ls", "reply": "x", "why": "y"}',
    ],
)
def test_an_example_without_its_reply_is_refused(line: str) -> None:
    with pytest.raises(ConfigurationError, match="line 2 of examples"):
        read_examples({"examples": f'{{"input": "a", "reply": "b"}}\n{line}'})
    with pytest.raises(ConfigurationError, match=r"suites\.command_guard\.prompts\.mine: line 1 of examples"):
        options("command_guard", {"system": "x", "examples": line})


@pytest.mark.parametrize(
    ("name", "parts", "called", "message"),
    [
        ("command_guard", {"system": "x", "sytem": "y"}, "mine", "has no part sytem: the parts of a prompt are system"),
        ("command_guard", {"user": "x"}, "mine", "needs the part system"),
        ("command_guard", {"system": "x"}, "direct", "has the name of a prompt type of the suite"),
        ("session_review", {"request": "{{mark}} {{alert}}"}, "mine", "request has no {{conversation}}"),
        ("session_review", {"system": "{{alert}}"}, "mine", "nothing is known to put in the place of {{alert}}"),
    ],
)
def test_what_a_suite_cannot_use_is_refused(name: str, parts: Mapping[str, str], called: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        options(name, parts, called)
    assert message in str(refused.value)
    assert f"suites.{name}.prompts.{called}" in str(refused.value)


def test_a_prompt_that_is_not_configured_any_more_is_told() -> None:
    with pytest.raises(ConfigurationError, match="the prompt mine is not in the configuration"):
        first_request(find_suite("command_guard"), {}, "mine")


def chosen(templates: Any, **parts: Mapping[str, str]) -> Mapping[str, Any]:
    section = {"templates": templates, **({"prompts": parts} if parts else {})}
    return options_of(find_suite("session_review"), Configuration(suites={"session_review": section}))


def test_the_set_of_templates_in_use_is_asked_with_and_in_the_criteria() -> None:
    suite = find_suite("session_review")
    usual = first_request(suite, {}, "direct")
    assert first_request(suite, chosen("process_first"), "direct") == usual
    assert criteria_hash_of(chosen("process_first"), "direct") == criteria_hash()
    outcome = first_request(suite, chosen("outcome_first"), "direct")
    assert "The outcome comes first." in outcome.messages[0]["content"]
    own = first_request(suite, chosen({"system": "Be strict."}), "direct")
    assert own.messages[0]["content"] == "Be strict."
    assert own.messages[1] == usual.messages[1], "what a folder leaves out is the suite's"
    sets = ("process_first", "outcome_first", {"system": "Be strict."}, {"system": "Be stricter."})
    assert len({criteria_hash_of(chosen(each), "direct") for each in sets}) == len(sets)


def test_a_prompt_of_ones_own_stands_upon_the_set_in_use() -> None:
    given = chosen("outcome_first", mine={"system": "Be strict."})
    request = first_request(find_suite("session_review"), given, "mine")
    assert request.messages[0]["content"] == "Be strict."
    assert "# How to score\n\nJudge five dimensions" in request.messages[1]["content"]


@pytest.mark.parametrize("templates", ["outcome_first", {"reminder": "Again."}])
def test_scores_under_the_set_in_use_are_the_current_ones(templates: Any) -> None:
    metrics = find_suite("session_review").all_metrics(chosen(templates))
    (estimator,) = (m.estimator for m in metrics if m.name == "obsolete_criteria_rate")
    assert isinstance(estimator, Rate)
    made = pl.DataFrame({"criteria_hash": [criteria_hash_of(chosen(templates), "direct"), criteria_hash()]})
    assert made.select(estimator.successes).to_series().to_list() == [False, True]


@pytest.mark.parametrize(
    ("name", "templates", "message"),
    [
        ("session_review", "outcomefirst", "one of the sets process_first, outcome_first"),
        ("session_review", {"sytem": "x"}, "templates has no part sytem"),
        ("session_review", {"request": "{{mark}} {{alert}}"}, "templates: request has no {{conversation}}"),
        ("command_guard", "outcome_first", "command_guard has no option templates"),
    ],
)
def test_templates_that_cannot_be_used_are_refused(name: str, templates: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        options_of(find_suite(name), Configuration(suites={name: {"templates": templates}}))
    assert message in str(refused.value)


def test_other_templates_are_other_criteria_and_current_ones() -> None:
    given = options("session_review", OWN["session_review"])
    assert criteria_hash_of(given, "mine") != criteria_hash_of(given, "direct") == criteria_hash()
    of_suite, of_both = (
        next(m for m in find_suite("session_review").all_metrics(o) if m.name == "obsolete_criteria_rate")
        for o in ({}, given)
    )
    assert of_suite != of_both
