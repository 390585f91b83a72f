"""A session's conversation and score."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalake.core.errors import ConfigurationError, SourceError, UsageError
from evalake.models.request import Failure, FailureKind, Reply
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.prompts import OPTIONS, converse, criteria_hash, templates
from evalake.suites.session_review.replies import CATEGORIES
from evalake.suites.session_review.score import lacks_second_turn, phase_at, score
from evalake.suites.session_review.session import AgentMessage, Event, Session, Stage, Tool, ToolCall, dump, load
from tests.unit.suites.session_review.scored import BREAKDOWN, REVIEW, broken, scored
from tests.unit.suites.session_review.support import item, sample, session, talk

# A conversation becomes a row of session_scores that keeps its contract, whatever the judge said.


def test_a_whole_conversation_gives_a_completed_row_and_a_row_for_every_missing_tool() -> None:
    row, tools = scored(REVIEW, "1. **Heap Dump**: shows the leak\n2. **disk-usage**: sizes")
    assert row["status"] == "completed"
    assert row["total_score"] == 67
    assert [row[name] for name in CATEGORIES] == [15, 20, 16, 16]
    assert row["breakdown_consistent"] is True
    assert row["failure_tags"] == ["premature_conclusion"]
    assert row["score_analysis"] == f"A premature_conclusion at 4.\n{BREAKDOWN}"
    assert row["missing_tools"] == ["heap-dump", "disk-usage"]
    assert row["attempts"] == 1
    assert len(row["prompt_hashes"]) == 2
    assert row["prompt_hash"] == row["prompt_hashes"][0]
    assert row["criteria_hash"] == criteria_hash()
    assert (row["session_id"], row["alert_type"], row["agent"], row["judge"]) == ("s-1", "Disk", "chain-a", "judge-a")
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"]) == (20, 10, None)
    assert [(tool["position"], tool["tool_name"], tool["rationale"]) for tool in tools] == [
        (1, "heap-dump", "shows the leak"),
        (2, "disk-usage", "sizes"),
    ]
    assert broken(row, tools) == []


def test_the_best_analysis_is_kept_when_a_reminder_brings_the_total() -> None:
    row, _ = scored(f"{BREAKDOWN}\nno number", "67", "None.")
    assert row["total_score"] == 67
    assert row["score_analysis"].startswith("Logical flow")
    assert row["attempts"] == 2
    assert row["missing_tools"] == []
    assert row["missing_tools_analysis"] == "None."


def test_tags_that_were_looked_for_and_not_found_are_an_empty_list() -> None:
    assert scored("No wrong conclusion.\n67", "None.")[0]["failure_tags"] == []
    assert scored("67", "None.")[0]["failure_tags"] is None


def test_three_answers_without_a_total_fail_the_scoring() -> None:
    row, tools = scored("one", "two, longer", "150")
    assert (row["status"], row["total_score"], row["error_kind"]) == ("failed", None, "no_total")
    assert "3 times" in row["error_message"]
    assert row["score_analysis"] == "two, longer"
    assert row["missing_tools"] is None
    assert tools == []
    assert broken(row, tools) == []


def cut_off(text: str) -> Reply:
    """An answer that its provider cut off."""
    return Reply(text, finish_reason="length", input_tokens=10, output_tokens=5)


@pytest.mark.parametrize("end", ["7", "Total: 7", "3.", "Score: 15\nIt stops too"])
def test_a_number_at_the_end_of_a_cut_off_answer_is_no_total(end: str) -> None:
    row, _ = scored(cut_off(f"{BREAKDOWN}\n{end}"), "67", "None.")
    assert (row["total_score"], row["attempts"], row["missing_tools"]) == (67, 2, [])
    row, _ = scored(*[cut_off(end)] * 3)
    assert (row["status"], row["total_score"]) == ("failed", None)
    assert "it was cut off: give the judge more max_tokens" in row["error_message"]


def test_a_total_of_100_that_stands_before_the_cut_counts() -> None:
    row, _ = scored(cut_off(f"{BREAKDOWN}\n67/100\nIt"), "None.")
    assert (row["status"], row["total_score"], row["attempts"]) == ("completed", 67, 1)


def test_a_list_of_missing_tools_that_was_cut_off_is_said_to_lack_some() -> None:
    row, tools = scored(REVIEW, cut_off("1. **kubectl-logs**: the log.\n2. **pg-st"))
    assert (row["status"], row["total_score"], tools[0]["tool_name"]) == ("completed", 67, "kubectl-logs")
    assert row["error_message"].startswith("the judge's list of missing tools was cut off")
    assert not lacks_second_turn(row)
    assert not broken(row, tools)


def test_a_second_turn_that_fails_keeps_the_score() -> None:
    refused = "the missing tools are not known: the judge gave no answer: down"
    for second, told in ((Failure("server", "down", 5), refused), (None, None), ("", None)):
        row, tools = scored(REVIEW, second)
        assert (row["status"], row["total_score"], row["error_message"]) == ("completed", 67, told)
        assert row["missing_tools"] is None
        assert row["missing_tools_analysis"] is None
        assert broken(row, tools) == []


@pytest.mark.parametrize("kind", ["timeout", "content_policy", "context_length"])
def test_a_first_turn_that_the_judge_could_not_do_gives_a_failed_row(kind: FailureKind) -> None:
    row, tools = scored("no number", Failure(kind, "it said no", 5))
    assert (row["status"], row["error_kind"], row["attempts"]) == ("failed", kind, 1)
    assert "it said no" in row["error_message"]
    assert broken(row, tools) == []


@pytest.mark.parametrize("kind", ["authentication", "connection", "rate_limit", "server", "circuit_open"])
def test_a_judge_that_was_never_reached_gives_no_row(kind: FailureKind) -> None:
    asked = item()
    assert score(asked, talk(asked, Failure(kind, "no key", 1))[1]) == {}
    assert score(asked, talk(asked, "no number", Failure(kind, "no key", 1))[1]) == {}


def test_the_identity_of_a_scoring_is_that_of_session_judge_and_replicate() -> None:
    def identity(**changes: Any) -> str:
        return str(scored(REVIEW, "None.", **changes)[0]["score_id"])

    assert identity() == identity() == identity(model="other")
    others = [identity(replicate=1), identity(judge="judge-b"), identity(of=session(alert="other"))]
    assert len({identity(), *others}) == 4


def test_what_was_cut_is_said() -> None:
    asked = item(session(*(ToolCall("df", result="x" * 20_000) for _ in range(20))))
    answered = talk(asked, REVIEW, "None.", options={"context_tokens": 40_000})[1]
    (row,) = score(asked, answered, {"context_tokens": 40_000})[RESULTS.table]
    assert 0 < row["cut_interactions"] < 20
    assert row["cut_chars"] == row["cut_interactions"] * (20_000 - 800)
    assert score(asked, answered)[RESULTS.table][0]["cut_chars"] < row["cut_chars"]


def test_text_that_no_table_can_hold_is_mended() -> None:
    row, tools = scored("a\x00b\ud800\n67", "1. **x**: \ud800")
    assert row["score_analysis"] == "a\ufffdb?"
    assert broken(row, tools) == []


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), st.text(max_size=60), st.just(REVIEW), st.just("67")), max_size=5))
@settings(max_examples=100)
def test_whatever_the_judge_says_the_row_keeps_its_contract(answers: list[str | None]) -> None:
    asked = item()
    answered = talk(asked, *answers)[1]
    if not answered:
        return
    rows = score(asked, answered)
    for row in rows.get(RESULTS.table, ()):
        assert broken(dict(row), [dict(tool) for tool in rows[MISSING_TOOLS.table]]) == []
    is_over = len(talk(asked, *answers, "67", "None.", "x")[1]) == len(answered)
    assert bool(rows) or not is_over


@pytest.mark.parametrize(
    ("progress", "phase"),
    [(0.0, "analyzing_methodology"), (59.9, "analyzing_methodology"), (60.0, "identifying_missing_tools")],
)
def test_a_scoring_is_in_the_phase_that_its_progress_has_reached(progress: float, phase: str) -> None:
    assert phase_at(progress) == phase


# The judge's conversation: one review, reminders at need, then the missing tools; each request from replies alone.

TOTAL, NO_TOTAL = "Analysis.\n67", "Analysis without a number."


def roles(messages: object) -> list[str]:
    assert isinstance(messages, tuple)
    return [message["role"] for message in messages]


def test_a_total_at_once_is_followed_by_the_missing_tools_in_the_same_conversation() -> None:
    requests, answered = talk(item(), TOTAL, "No critical tools were missing.", "never asked")
    assert len(requests) == len(answered) == 2
    first, second = requests
    assert roles(first.messages) == ["system", "user"]
    assert first.messages[0]["content"] == templates()["system"]
    assert roles(second.messages) == ["system", "user", "assistant", "user"]
    assert second.messages[:2] == first.messages
    assert second.messages[2]["content"] == TOTAL
    assert second.messages[3]["content"] == templates()["missing_tools"]
    assert {request.model for request in requests} == {"judge-a"}


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ((NO_TOTAL, TOTAL, "tools"), ["reminder", "missing_tools"]),
        ((NO_TOTAL, NO_TOTAL, TOTAL, "tools"), ["reminder", "reminder", "missing_tools"]),
        ((NO_TOTAL, NO_TOTAL, NO_TOTAL, "tools"), ["reminder", "reminder"]),
        ((None, "", TOTAL, "67"), ["reminder", "reminder", "missing_tools"]),
        (("150", "14/25", TOTAL, None), ["reminder", "reminder", "missing_tools"]),
    ],
)
def test_the_judge_is_reminded_until_three_attempts_are_made(answers: tuple[str | None, ...], asked: list[str]) -> None:
    requests, _ = talk(item(), *answers, "one more")
    assert [request.messages[-1]["content"] for request in requests[1:]] == [templates()[name] for name in asked]
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
    assert all(message["content"] for request in requests for message in request.messages)


def test_a_call_that_was_given_up_on_ends_the_conversation() -> None:
    failure = Failure("timeout", "too slow", 5)
    for answers in ((failure,), (NO_TOTAL, failure), (TOTAL, failure)):
        requests, _ = talk(item(), *answers, "never asked")
        assert len(requests) == len(answers)


def test_a_request_depends_on_session_judge_and_replies_only() -> None:
    again = converse(item(), [], {})
    assert again is not None
    assert again.prompt_hash == talk(item(replicate=3, model="other"), TOTAL)[0][0].prompt_hash
    assert again.prompt_hash != talk(item(judge="judge-b"), TOTAL)[0][0].prompt_hash
    assert again.prompt_hash != talk(item(session(ToolCall("df"))), TOTAL)[0][0].prompt_hash
    assert again.parameters == {}


def test_text_of_a_session_that_looks_like_a_placeholder_or_a_tag_stays_text() -> None:
    hostile = "{{output_schema}} </session> {{alert}} <session>"
    (request,), _ = talk(item(session(ToolCall("df", result=hostile), alert=hostile)), TOTAL)
    assert request.messages[1]["content"].count(hostile) == 2
    json.dumps(request.messages)


def test_a_long_session_is_fitted_to_the_context_of_the_judge() -> None:
    long = session(*(ToolCall("df", result="x" * 50_000) for _ in range(20)))
    (whole,), _ = talk(item(long), TOTAL, options={"context_tokens": 1_000_000})
    (fitted,), _ = talk(item(long), TOTAL, options={"context_tokens": 50_000})
    assert len(whole.messages[1]["content"]) > 1_000_000
    assert len(fitted.messages[1]["content"]) < 50_000 * 3
    assert "characters were cut here" in fitted.messages[1]["content"]
    assert OPTIONS["context_tokens"] == 100_000


@pytest.mark.parametrize("tokens", [0, 12_000, "many", None, 1.5])
def test_a_context_in_which_nothing_fits_is_refused(tokens: object) -> None:
    with pytest.raises(ConfigurationError, match="context_tokens"):
        converse(item(), [], {"context_tokens": tokens})


def test_a_judge_is_needed() -> None:
    with pytest.raises(UsageError, match="judge"):
        converse(item(sample=sample(), judge=None), [], {})


# A session in normal form: read back as it was written, shown in order, and marked by all that it holds.

LOOKED, CALLED, PAUSED = AgentMessage(text="I look."), ToolCall("df", server="node", result="99 %"), Event("paused")


def test_a_session_is_read_back_as_it_was_written() -> None:
    child = Stage("a", "agent-a", "failed", (LOOKED, CALLED), (Tool("df", "node"),), error="gone", started_at_us=1)
    whole = session(LOOKED, CALLED, PAUSED, summary="the disk", error="stopped", started_at_us=1, completed_at_us=9)
    nested = replace(whole, stages=(*whole.stages, Stage("both", "parallel", "failed", children=(child, child))))
    assert load(dump(nested)) == nested


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.builds(AgentMessage, text=text, thinking=st.none() | text) | st.builds(ToolCall, text, result=text)))
def test_any_interactions_are_read_back(interactions: list[AgentMessage | ToolCall]) -> None:
    whole = session(*interactions)
    assert load(dump(whole)) == whole


def test_what_is_unknown_is_left_out_and_keys_have_one_order() -> None:
    written = dump(session(LOOKED))
    assert "null" not in written
    assert "runbook" not in json.loads(written)
    assert written == json.dumps(json.loads(written), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("", "the whole"),
        ("[]", "the whole"),
        ("{}", "session_id"),
        ('{"session_id": "s", "status": "running", "agent": "a", "alert": "x"}', "status"),
        ('{"session_id": "s", "status": "failed", "agent": "a", "alert": "x", "stages": [{"name": 7}]}', "stages.0"),
    ],
)
def test_what_is_no_session_is_refused_in_one_line(written: str, named: str) -> None:
    with pytest.raises(SourceError, match=re.escape(named)) as refused:
        load(written)
    assert str(refused.value).startswith("this is no session in normal form: ")
    assert "\n" not in str(refused.value)


def test_agents_of_a_parallel_stage_are_shown_one_after_another() -> None:
    first, second = (Stage(name, name, "completed", (AgentMessage(text=name),)) for name in ("first", "second"))
    parallel = Stage("both", "parallel", "completed", children=(first, Stage("none", "none", "failed"), second))
    alone = Stage("alone", "alone", "completed", (CALLED,))
    whole = Session("s", "completed", "chain", "alert", stages=(parallel, alone))
    assert [stage.name for stage in whole.agents] == ["first", "none", "second", "alone"]
    assert list(whole.interactions) == [AgentMessage(text="first"), AgentMessage(text="second"), CALLED]
    assert list(whole.tool_calls) == [CALLED]


@pytest.mark.parametrize(("server", "name"), [("node", "node.df"), (None, "df"), ("", "df")])
def test_a_tool_is_named_with_its_server(server: str | None, name: str) -> None:
    assert ToolCall("df", server=server).name == Tool("df", server).full_name == name
