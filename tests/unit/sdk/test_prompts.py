"""Prompts and conversations: templates of one's own, turns, checks and spooled text."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evalake.core.configuration import Configuration
from evalake.core.errors import ConfigurationError, SourceError
from evalake.metrics.estimators import Rate
from evalake.models.request import Reply, Request
from evalake.sdk import Exchange, Item, Suite
from evalake.sdk import sample as samples_module
from evalake.sdk.results import MOST_FLAWS, ModelName, Name, Strict, read_line
from evalake.sdk.sample import Seen, Spool, spooled
from evalake.sdk.suite import read_examples
from evalake.suites.command_guard.baselines import command_of
from evalake.suites.command_guard.sources import CONTRADICTION, read_dataset
from evalake.suites.registry import suite, suite_names
from evalake.suites.registry import suite as find_suite
from evalake.suites.session_review.prompts import criteria_hash, criteria_hash_of
from evalake.tasks.runtime.context import options_of
from tests.cases import cases_beside

CASES = cases_beside(__file__, "prompts.json")

# Prompts that a configuration adds: how each suite asks with them, and what it refuses.

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


@pytest.mark.parametrize("line", CASES["examples"])
def test_an_example_without_its_reply_is_refused(line: str) -> None:
    with pytest.raises(ConfigurationError, match="line 2 of examples"):
        read_examples({"examples": f'{{"input": "a", "reply": "b"}}\n{line}'})
    with pytest.raises(ConfigurationError, match=r"suites\.command_guard\.prompts\.mine: line 1 of examples"):
        options("command_guard", {"system": "x", "examples": line})


@pytest.mark.parametrize(("name", "parts", "called", "message"), CASES["refused"])
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


@pytest.mark.parametrize(("name", "templates", "message"), CASES["templates"])
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


# A conversation begins with who is measured, goes on with the judge, and ends; then its item has rows.


@pytest.mark.parametrize("name", suite_names())
def test_it_begins_with_who_is_measured_and_comes_to_an_end(name: str) -> None:
    of = suite(name)
    (sample, *_) = of.data.read(of.data.starter[0]).samples
    model = of.conversation.default_models[0] if of.conversation.asks_subject else "a/model"
    judge = of.conversation.default_judges[0] if of.is_judged else None
    item = Item(sample, model, judge)
    answered: list[Exchange] = []
    asked = []
    while (request := of.conversation.next_request(item, answered, of.options)) is not None:
        assert len(answered) < 10
        asked.append(request.model)
        reply = Reply(of.conversation.baselines[request.model.removeprefix("baseline/")](request.messages))
        answered.append(Exchange(request.prompt_hash, reply))
    assert asked[0] == (model if of.conversation.asks_subject else judge)
    assert set(asked[1:]) <= {judge}
    assert len({exchange.prompt_hash for exchange in answered}) == len(answered), "no request is asked twice"
    (row, *_) = of.scoring.score(item, answered, of.options)[of.results.table]
    assert (row["model"], row["sample_hash"], row["replicate"]) == (model, sample.sample_hash, 0)


@pytest.mark.parametrize("name", suite_names())
def test_what_is_asked_follows_from_item_and_replies_alone(name: str) -> None:
    of = suite(name)
    first, second, *_ = of.data.read(of.data.starter[0]).samples
    items = [Item(sample, "a/model", "a/judge", of.prompts.types[0]) for sample in (first, second)]
    hashes = [
        request.prompt_hash
        for item in (*items, *items)
        if (request := of.conversation.next_request(item, (), of.options))
    ]
    assert hashes[:2] == hashes[2:]
    assert hashes[0] != hashes[1]
    later = of.conversation.next_request(
        Item(first, "a/model", "a/judge", of.prompts.types[0], replicate=3), (), of.options
    )
    assert later is not None
    assert later.prompt_hash == hashes[0], "repeats are calls of their own by their number, not by their words"


# Sequences that lie in a file are read like lists, and sets of digests like sets, whatever their size.


@pytest.mark.parametrize("count", [0, 1, 999, 1_000, 2_500])
def test_a_spool_is_read_like_a_list(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_module, "IN_MEMORY", 100)
    items = [f"{number} \ud800" for number in range(count)]
    kept = spooled(iter(items))
    assert list(kept) == items
    assert list(kept) == items
    assert len(kept) == count
    assert isinstance(kept, Spool) == (count >= samples_module.PART)
    for part in (slice(0, 3), slice(995, 1_005), slice(None, None, 700), slice(-2, None), slice(5, 2)):
        assert list(kept[part]) == items[part]
    if count:
        assert (kept[0], kept[-1]) == (items[0], items[-1])
    with pytest.raises(IndexError):
        kept[count]


def test_a_set_of_digests_knows_its_members_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_module, "RECENT", 300)
    seen, texts = Seen(), [str(number) for number in range(5_000)]  # some of their digests end in zero bytes
    assert all(seen.add(text) for text in texts)
    assert not any(seen.add(text) for text in texts)
    assert all(text in seen for text in texts)
    assert not any(f"other {text}" in seen for text in texts)


def test_a_large_table_is_read_whole_and_its_repetitions_are_found(tmp_path: Path) -> None:
    file = tmp_path / "large.jsonl"
    lines = [
        {"sample_id": f"s{n}", "command": f"ls {n}", "label": ("harmless", "malicious")[n % 2]} for n in range(2_100)
    ]
    lines += [{**lines[3], "sample_id": "again"}, {**lines[4], "sample_id": "other", "label": "malicious"}]
    file.write_text("\n".join(map(json.dumps, [*lines, {**lines[0], "command": "pwd"}])))
    dataset = read_dataset(str(file))
    assert [sample.sample_id for sample in dataset.samples] == [line["sample_id"] for line in lines[:2_100]]
    assert [left.reason for left in dataset.skipped] == ["duplicate", CONTRADICTION, "sample_id already taken"]
    assert [left.reason for left in dataset.skipped if left.payload is not None] == [
        left.reason for left in dataset.skipped[1:]
    ]


# What is wrong with JSON from outside is told in few words, whatever it is.


class Part(Strict):
    share: float


class Whole(Strict):
    name: Name
    parts: tuple[Part, ...] = ()


def told(line: dict[str, Any]) -> str:
    with pytest.raises(SourceError) as caught:
        read_line(Whole, line)
    return str(caught.value)


def test_a_good_line_is_read_without_what_was_expected_of_it() -> None:
    assert read_line(Whole, {"name": "a", "parts": ({"share": 1},), "expected_share": 2}) == Whole(
        name="a", parts=(Part(share=1.0),)
    )


def test_unknown_fields_come_first_each_by_its_place() -> None:
    assert told({"parts": ({"share": "1", "x": 2},)}).startswith("unknown field 'parts.0.x'; name: Field required; ")


@pytest.mark.parametrize("name", ["", " \n", "a\x00", "\ud800", None, 1])
def test_a_name_is_text_that_can_be_stored(name: Any) -> None:
    assert told({"name": name}).startswith("name: ")


@pytest.mark.parametrize("model", ["a" * 241, "/" * 81, "\U0001f40d" * 21])
def test_a_model_has_a_name_that_a_folder_can_have(model: str) -> None:
    class Line(Strict):
        model: ModelName

    assert read_line(Line, {"model": model[:-1]}).model == model[:-1]
    with pytest.raises(SourceError, match="model: too long"):
        read_line(Line, {"model": model})


@pytest.mark.parametrize("share", [float("nan"), float("inf"), "1", True, None])
def test_a_number_is_a_number(share: Any) -> None:
    assert told({"name": "a", "parts": ({"share": share},)}).startswith("parts.0.share: ")


def test_what_is_told_is_bounded() -> None:
    assert told({"name": "a", "parts": ({},) * 1000}).count(";") == MOST_FLAWS - 1
    assert len(told({"name": "a", "x" * 100_000: 1})) < 200
