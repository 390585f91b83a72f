"""Judges are asked at temperature 0, with a seed where they are asked once; what is configured comes first."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalake.core.configuration import Configuration
from evalake.core.hashing import content_hash
from evalake.models.request import Reply, Request
from evalake.sdk import Exchange, Item, Sample
from evalake.storage.lake import Lake
from evalake.suites.registry import canary_items
from evalake.tasks.converse import Conversation, next_request
from evalake.tasks.runtime.context import RunContext
from tests.unit.suites.solidity_audit.support import sample

JUDGE = "openai/gpt-4o"
SUITE = "solidity_audit"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with a fence makes the lake's secret: not in the checkout."""
    monkeypatch.chdir(tmp_path)


def context(models: Mapping[str, Any] | None = None, suite: str = SUITE) -> RunContext:
    configuration = Configuration.model_validate({"models": {**(models or {})}})
    return RunContext("run", suite, Lake("unused"), configuration)


def asked(where: RunContext, replicate: int = 0, judge: str = JUDGE, *replies: str) -> Request:
    """What is asked after an audit and these replies of the judge."""
    item = Item(sample(), "openai/subject", judge, "naturalistic", replicate)
    answered = [Exchange(content_hash([text]), Reply(text)) for text in ("an audit", *replies)]
    request = next_request(where, Conversation(item, answered=answered))
    assert request is not None
    return request


def test_a_judge_is_asked_at_temperature_0_and_once_with_a_seed() -> None:
    first, again = asked(context()), asked(context(), 1)
    assert first.parameters["temperature"] == again.parameters["temperature"] == 0
    assert "seed" in first.parameters
    assert "seed" not in again.parameters
    assert asked(context(), 0, JUDGE, "no JSON").parameters == first.parameters  # its repair turn


def test_a_subject_is_asked_as_configured_and_no_other_way() -> None:
    item = Item(sample(), JUDGE, JUDGE)
    plain, seeded = context(), context({JUDGE: {"parameters": {"seed": 3}}})
    assert [next_request(where, Conversation(item)).parameters for where in (plain, seeded)] == [{}, {"seed": 3}]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("parameters", "sent"),
    [({"temperature": 0.5}, {"temperature": 0.5}), ({"seed": 3, "top_p": 0.9}, {"seed": 3, "top_p": 0.9})],
)
def test_what_is_configured_comes_first(parameters: dict[str, Any], sent: dict[str, Any]) -> None:
    given = asked(context({JUDGE: {"parameters": parameters}})).parameters
    assert {name: given[name] for name in sent} == sent
    assert given.get("temperature") == sent.get("temperature")
    assert "seed" not in asked(context({JUDGE: {"parameters": parameters}}), 1).parameters


def test_a_judge_can_be_asked_as_it_was_before_which_costs_nothing_again() -> None:
    left_alone = context({JUDGE: {"suite_parameters": False}})
    request = asked(left_alone)
    assert request.parameters == {}
    assert request.prompt_hash == Request(JUDGE, request.messages, {}).prompt_hash
    variant = context({"careful": {"model": JUDGE}, JUDGE: {"suite_parameters": False}})
    assert asked(variant, judge="careful").prompt_hash == request.prompt_hash


def test_a_rule_based_judge_is_asked_without_parameters() -> None:
    assert asked(context(), judge="baseline/overlap-judge").parameters == {}


@pytest.mark.parametrize(("said", "streams"), [({}, True), ({"stream": False}, False), ({"stream": True}, True)])
def test_long_answers_come_in_pieces_unless_the_model_says_otherwise(said: dict[str, Any], streams: bool) -> None:
    where = context({JUDGE: said, "variant": {"model": JUDGE}})
    subject = next_request(where, Conversation(Item(sample(), JUDGE, JUDGE)))
    assert subject is not None
    assert (subject.stream, asked(where).stream, asked(where, judge="variant").stream) == (streams,) * 3
    assert asked(where).prompt_hash == asked(context()).prompt_hash  # so that either answers the other
    assert asked(context({"variant": {"model": JUDGE, "stream": False}}), judge="variant").stream is False


@pytest.mark.parametrize(("suite", "keeps"), [(SUITE, False), ("session_review", True)])
def test_what_a_conversation_goes_on_from_is_kept_unless_the_model_says_otherwise(suite: str, keeps: bool) -> None:
    for said, kept in (({}, keeps), ({"cache_prompt": True}, True), ({"cache_prompt": False}, False)):
        item, answered = canary_items(suite, JUDGE, 2026112200)[0]
        request = next_request(context({JUDGE: said}, suite), Conversation(item, answered=answered))
        assert request is not None
        assert request.cache_prompt is kept


def test_short_answers_come_at_once_unless_the_model_says_otherwise() -> None:
    item = Item(Sample("command_guard", "d", "1", "rm -rf /"), JUDGE)
    plain, streamed = context(suite="command_guard"), context({JUDGE: {"stream": True}}, "command_guard")
    requests = [next_request(where, Conversation(item)) for where in (plain, streamed)]
    assert [request.stream for request in requests if request] == [False, True]


@pytest.mark.parametrize("suite", [SUITE, "session_review"])
def test_a_canary_sends_no_seed_even_where_one_is_configured(suite: str) -> None:
    where = context({JUDGE: {"parameters": {"seed": 3}}}, suite)
    requests = [
        next_request(where, Conversation(item, answered=answered))
        for item, answered in canary_items(suite, JUDGE, 2026112200)
    ]
    assert requests
    assert all(request is not None and "seed" not in request.parameters for request in requests)
