"""A session in normal form: read back as it was written, shown in order, and marked by all that it holds."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.core.errors import SourceError
from evalake.suites.session_review.session import AgentMessage, Event, Session, Stage, Tool, ToolCall, dump, load
from tests.unit.suites.session_review.support import session

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
