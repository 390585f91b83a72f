"""A conversation becomes a row of session_scores that keeps its contract, whatever the judge said."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalake.models.request import Failure, FailureKind
from evalake.suites.session_review.contract import MISSING_TOOLS, RESULTS
from evalake.suites.session_review.prompts import criteria_hash
from evalake.suites.session_review.score import phase_at, score
from evalake.suites.session_review.session import ToolCall
from tests.unit.suites.session_review.scored import BREAKDOWN, REVIEW, broken, scored
from tests.unit.suites.session_review.support import item, session, talk


def test_a_whole_conversation_gives_a_completed_row_and_a_row_for_every_missing_tool() -> None:
    row, tools = scored(REVIEW, "1. **Heap Dump**: shows the leak\n2. **disk-usage**: sizes")
    assert row["status"] == "completed"
    assert row["total_score"] == 67
    assert [row[name] for name in ("logical_flow", "consistency", "tool_relevance", "synthesis_quality")] == [
        15,
        20,
        16,
        16,
    ]
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
