"""Histories and traces of agents become sessions: every call with its result, by agent, each once."""

import json
from pathlib import Path
from typing import Any

import pytest

from evalake.suites.session_review.session import AgentMessage, Event, Session, ToolCall, load
from evalake.suites.session_review.sources.read import read_dataset, unfinished
from tests.cases import cases_beside

CASES = cases_beside(__file__, "histories.json")


def session(tmp_path: Path, document: Any) -> Session:
    (tmp_path / "case.json").write_text(json.dumps(document))
    dataset = read_dataset(str(tmp_path / "case.json"))
    (sample,) = dataset.samples
    return load(sample.input)


def calls(read: Session) -> list[tuple[str, str, str | None, str | None]]:
    return [
        (stage.agent, each.tool, each.result, each.error)
        for stage in read.agents
        for each in stage.interactions
        if isinstance(each, ToolCall)
    ]


OPENAI: list[dict[str, Any]] = CASES["openai"]


@pytest.mark.parametrize("document", [OPENAI, {"messages": OPENAI}, CASES["anthropic"], CASES["responses"]])
def test_a_history_of_an_api_is_a_session(tmp_path: Path, document: Any) -> None:
    read = session(tmp_path, document)
    assert (read.session_id, read.alert) == ("case", "Disk full on db1")
    assert [each[1:] for each in calls(read)] == [("df", "98 %", None)]
    assert "It is full." in [each.text for each in read.interactions if isinstance(each, AgentMessage)]
    events = [each.text for each in read.interactions if isinstance(each, Event)]
    assert events == (["the user says: And db2?"] if "db2" in json.dumps(document) else [])


STATES = {"in_progress": None, "queued": None, "incomplete": "failed", "Timed-out": "timed_out", "success": "completed"}


def test_a_history_whose_status_is_no_end_is_not_over(tmp_path: Path) -> None:
    bodies = [{**CASES["responses"], "id": word, "status": word} for word in STATES]
    (tmp_path / "all.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in [*bodies, {**bodies[0], "status": 200}])
    )
    dataset = read_dataset(str(tmp_path / "all.jsonl"))
    ended = {"in_progress": "completed", **{word: status for word, status in STATES.items() if status}}
    assert {each.sample_id: load(each.input).status for each in dataset.samples} == ended
    assert unfinished(dataset) == {"in_progress", "queued"}


def test_a_line_is_a_transcript(tmp_path: Path) -> None:
    lines = [json.dumps({"messages": OPENAI}), json.dumps(CASES["anthropic"])]
    (tmp_path / "many.jsonl").write_text("\n".join(lines))
    assert [sample.sample_id for sample in read_dataset(str(tmp_path / "many.jsonl")).samples] == ["many-1", "many-2"]


def test_every_history_of_a_folder_is_a_session(tmp_path: Path) -> None:
    """Files that others are named like, too, are told apart by their paths; `trace.json` is not TARSy's alone."""
    document = otlp(invoke(1, None, "sre", "talk"), *LOOKS)
    files = {"alone": OPENAI, "a/messages": OPENAI, "b/messages": {"messages": OPENAI}, "b/trace": document}
    for name, history in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.json").write_text(json.dumps(history))
    for folder in ("a", "b"):
        (tmp_path / folder / "many.jsonl").write_text(json.dumps({"messages": OPENAI}))
    dataset = read_dataset(str(tmp_path))
    ids = {*files, "a/many-1", "b/many-1", "talk"} - {"b/trace"}
    assert ({each.sample_id for each in dataset.samples}, dataset.skipped) == (ids, ())


def attributes(**given: Any) -> list[dict[str, Any]]:
    names = {name.replace("__", "."): value for name, value in given.items()}
    return [
        {"key": name, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}
        for name, value in names.items()
    ]


def span(number: int, parent: int | None, name: str, **given: Any) -> dict[str, Any]:
    times = {"startTimeUnixNano": str(number * 10**9), "endTimeUnixNano": str(number * 10**9 + 5)}
    more = {} if parent is None else {"parentSpanId": f"s{parent}"}
    return {"traceId": "t", "spanId": f"s{number}", "name": name, **more, **times, "attributes": attributes(**given)}


def part(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {"resource": {"attributes": attributes(service__name="sre")}, "scopeSpans": [{"spans": list(spans)}]}
        ]
    }


ASKED = part("user", {"type": "text", "content": "Disk full on db1"})
CALLED = part(
    "assistant",
    {"type": "reasoning", "content": "hm"},
    {"type": "tool_call", "id": "c1", "name": "df", "arguments": {"host": "db1"}},
)
ANSWERED = part("tool", {"type": "tool_call_response", "id": "c1", "response": "98 %"})
CONCLUDED = part("assistant", {"type": "text", "content": "It is full."})


def invoke(number: int, parent: int | None, agent: str, talk: str) -> dict[str, Any]:
    named = {"gen_ai__agent__name": agent, "gen_ai__conversation__id": talk}
    return span(number, parent, f"invoke_agent {agent}", gen_ai__operation__name="invoke_agent", **named)


def chat(number: int, parent: int, given: list[Any], *said: dict[str, Any]) -> dict[str, Any]:
    messages = {"gen_ai__input__messages": given, "gen_ai__output__messages": said}
    return span(number, parent, "chat m", gen_ai__operation__name="chat", **messages)


def execute(number: int, parent: int, tool: str, **call: str) -> dict[str, Any]:
    told = {"gen_ai__tool__name": tool, **{f"gen_ai__tool__call__{name}": value for name, value in call.items()}}
    return span(number, parent, f"execute_tool {tool}", gen_ai__operation__name="execute_tool", **told)


LOOKS = [
    chat(2, 1, [ASKED], CALLED),
    execute(3, 1, "df", id="c1", result="98 %"),
    chat(4, 1, [ASKED, CALLED, ANSWERED], CONCLUDED),
]


def test_a_file_of_the_sdks_exporter_spreads_a_trace_over_its_lines(tmp_path: Path) -> None:
    """As OpenTelemetry's Python SDK 1.45.2 writes it: hexadecimal ids, a line for each batch, the root span last."""
    spans = [*LOOKS, invoke(1, None, "sre", "talk")]
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(otlp(each)) + "\n" for each in spans))
    read = read_dataset(str(tmp_path / "spans.jsonl"))
    assert ([each.sample_id for each in read.samples], read.skipped) == (["talk"], ())
    whole = load(read.samples[0].input)
    assert (whole.alert, whole.final_analysis) == ("Disk full on db1", "It is full.")
    assert [each[1] for each in calls(whole)] == ["df"]


def test_spans_of_otlp_count_each_message_once_by_agent(tmp_path: Path) -> None:
    removes = part("assistant", {"type": "tool_call", "id": "c9", "name": "rm", "arguments": {}})
    document = otlp(
        invoke(1, None, "lead", "talk-1"),
        *LOOKS,
        span(5, 1, "invoke_agent helper", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="helper"),
        chat(6, 5, [part("user", {"type": "text", "content": "Clean up"})], removes),
        {**execute(7, 5, "rm", id="c9"), "status": {"code": 2, "message": "denied"}},
        execute(8, 1, "ping", result="pong"),
    )
    read = session(tmp_path, document)
    assert (read.session_id, read.alert, read.agent) == ("talk-1", "Disk full on db1", "lead")
    assert calls(read) == [
        ("lead", "df", "98 %", None),
        ("lead", "ping", "pong", None),
        ("helper", "rm", None, "denied"),
    ]
    said = [(each.text, each.thinking) for each in read.interactions if isinstance(each, AgentMessage)]
    assert said == [(None, "hm"), ("It is full.", None)]
    assert read.started_at_us == 2_000_000


def test_messages_in_events_and_openinference_attributes_are_read(tmp_path: Path) -> None:
    events = [
        {"name": "gen_ai.user.message", "timeUnixNano": "1", "attributes": attributes(content="Disk full on db1")},
        {"name": "gen_ai.choice", "timeUnixNano": "2", "attributes": attributes(message={"content": "It is full."})},
    ]
    read = session(tmp_path, otlp({**span(1, None, "chat m", gen_ai__operation__name="chat"), "events": events}))
    assert (read.alert, read.final_analysis, read.agent) == ("Disk full on db1", "It is full.", "sre")
    flat = {
        "openinference__span__kind": "LLM",
        "llm__input_messages__0__message__role": "user",
        "llm__input_messages__0__message__content": "Disk full on db1",
        "llm__output_messages__0__message__role": "assistant",
        "llm__output_messages__0__message__tool_calls__0__tool_call__id": "c1",
        "llm__output_messages__0__message__tool_calls__0__tool_call__function__name": "df",
    }
    tool = span(2, None, "df", openinference__span__kind="TOOL", output__value="98 %")
    assert calls(session(tmp_path, otlp(span(1, None, "LLM", **flat), tool))) == [("sre", "df", "98 %", None)]


def test_a_trace_of_langfuse_and_spans_of_phoenix_are_sessions(tmp_path: Path) -> None:
    assert calls(session(tmp_path, CASES["langfuse"])) == [("sre", "df", "98 %", None)]
    assert session(tmp_path, CASES["phoenix"]).final_analysis == "Ho"
    assert session(tmp_path, {"data": CASES["phoenix"]}).alert == "Hi"


EVENT = {"name": "gen_ai.user.message", "timeUnixNano": "x", "attributes": attributes(content="Hi")}
TEXT = "llm.output_messages.0.message."
NUMBER = [
    {"key": f"{TEXT}contents.0.message_content.text", "value": {"intValue": 7}},
    {"key": f"{TEXT}role", "value": {"stringValue": "assistant"}},
]
NOTHING, NO_CALL = "session in which nothing happened", "trace without a call of a model"
ODD: list[tuple[dict[str, Any], str | None]] = [
    (chat(1, 0, [{**ANSWERED, "parts": [{**ANSWERED["parts"][0], "id": [1]}]}]), None),
    ({**chat(1, 0, [ASKED]), "startTimeUnixNano": float("inf")}, NOTHING),
    ({**span(1, None, "chat", gen_ai__operation__name="chat"), "events": [EVENT, {"name": [1]}]}, NOTHING),
    ({**span(1, None, "x"), "attributes": [{"key": "a", "value": {"intValue": "x"}}]}, NO_CALL),
    ({**span(1, None, "x"), "attributes": NUMBER}, None),
    ({**chat(1, 0, [ASKED]), "attributes": attributes(**{"a." * 3000: "x"})}, "nested too deeply"),
    ({**chat(1, 0, [ASKED]), "attributes": attributes(**{f"a.{'9' * 5000}": "x"})}, "values that no reader expects"),
]


@pytest.mark.parametrize(("odd", "reason"), ODD)
def test_odd_values_spoil_no_other_session_of_the_source(tmp_path: Path, odd: Any, reason: str | None) -> None:
    for name, one in (("good", otlp(invoke(1, None, "sre", "talk"), *LOOKS)), ("odd", otlp(odd))):
        (tmp_path / f"{name}.json").write_text(json.dumps(one).replace("Infinity", "1e999"))
    dataset = read_dataset(f"{tmp_path}?accept_empty=1")
    assert [each.sample_id for each in dataset.samples] == ["talk", *["t"][: reason is None]]
    assert [each.reason for each in dataset.skipped] == [reason][: reason is not None]
