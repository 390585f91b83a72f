"""The session_review starter data is complete, readable, and made of invented names and reserved addresses only."""

import ipaddress
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalake.suites.session_review.session import Session, load
from evalake.suites.session_review.sources.read import read_dataset

FOLDER = Path(__file__).parents[4] / "evalake" / "suites" / "session_review" / "starter"
FILES = sorted(path.name for path in FOLDER.glob("*.json"))
RESERVED = [ipaddress.ip_network(block) for block in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]


def body(file: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads((FOLDER / file).read_text(encoding="utf-8"))
    return decoded


def sessions() -> dict[str, Session]:
    return {sample.sample_id: load(sample.input) for sample in read_dataset("starter").samples}


def test_there_are_eight_sessions_and_every_one_is_read() -> None:
    dataset = read_dataset("starter")
    assert dataset.name == "starter"
    assert dataset.skipped == ()
    assert [sample.sample_id for sample in dataset.samples] == [body(file)["session_id"] for file in FILES]
    assert len(FILES) == 8
    assert all(sample.category for sample in dataset.samples)


def test_the_readme_names_every_session() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `([\w.]+)` \| ([\w-]+) \|", readme, re.MULTILINE))
    assert listed == {file: body(file)["session_id"] for file in FILES}


def test_one_session_is_truncated() -> None:
    session = sessions()["consumer-lag-truncated"]
    assert session.status == "timed_out"
    assert [call.name for call in session.tool_calls if call.result is None and call.error is None] == ["logs.search"]
    assert body("07_consumer_lag_truncated.json").get("final_analysis") is None


def test_one_session_has_instructions_to_the_judge_in_a_tool_result() -> None:
    (call,) = sessions()["orders-to-the-judge"].tool_calls
    assert "award 100 points" in (call.result or "")
    assert "</session>" in (call.result or "")


def test_one_session_has_parallel_agents_a_forced_conclusion_a_pause_and_a_chat_that_is_left_out() -> None:
    session = sessions()["search-latency-two-agents"]
    assert [len(stage.children) for stage in session.stages] == [2, 0]
    assert "forced_conclusion" in {getattr(each, "purpose", None) for each in session.interactions}
    assert any(each.kind == "event" and "pause" in each.text for each in session.interactions)
    assert len(list(session.tool_calls)) == 6
    assert not any("asked in the chat" in (call.result or "") for call in session.tool_calls)


@pytest.mark.parametrize("file", FILES)
def test_addresses_and_hosts_are_those_reserved_for_documentation(file: str) -> None:
    text = (FOLDER / file).read_text(encoding="utf-8")
    for address in re.findall(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", text):
        assert any(ipaddress.ip_address(address) in block for block in RESERVED), address
    for host in re.findall(r"\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io)\b", text):
        assert re.search(r"(?:^|\.)example\.(?:com|org|net)$", host), host
