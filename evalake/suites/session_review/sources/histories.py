"""Histories of agents as generic sessions: messages of OpenAI's and Anthropic's APIs, and traces of calls.

* messages alone: a list, or an object with `messages` (chat completions, Anthropic) or `input` and `output` (Responses)
* OTLP JSON (`resourceSpans`) of GenAI spans by OpenTelemetry's conventions: attributes or events, and OpenInference's
* spans as Phoenix exports them, and traces with `observations` as Langfuse does

A trace repeats its history in each call of a model: every message counts once, each result with its call.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalake.sdk.json_in_text import mapping, objects
from evalake.suites.session_review.sources import generic
from evalake.suites.session_review.sources.generic import decoded, microseconds, text

Body = dict[str, Any]
_CHAT = ("chat", "text_completion", "generate_content")
_SAID = {"gen_ai.user.message": "user", "gen_ai.system.message": "system", "gen_ai.tool.message": "tool"}


@dataclass
class Span:
    """A call of a model, or of a tool."""

    trace: str
    span: str
    parent: str | None
    name: str
    start: int | None
    end: int | None
    agent: str | None = None
    conversation: str | None = None
    messages: list[Body] = field(default_factory=list)  # what a model was given, and said
    tool: str | None = None
    call: str | None = None
    arguments: Any = None
    result: Any = None
    error: str | None = None


# OTLP: attributes and events of spans.


def otlp_spans(document: Mapping[str, Any]) -> tuple[Iterator[Span], dict[str, str]]:
    """Read the spans of an OTLP document; returns them, and the service of each trace."""
    spans, services = [], {}
    for resource in objects(document["resourceSpans"]):
        about = _attributes(mapping(resource.get("resource")).get("attributes"))
        for scope in objects(resource.get("scopeSpans")):
            for each in objects(scope.get("spans")):
                spans.append(each)
                services[str(each.get("traceId"))] = str(about.get("service.name", "agent"))
    return map(_otlp_span, spans), services


def _otlp_span(span: Mapping[str, Any]) -> Span:
    status = mapping(span.get("status"))
    failed = status.get("code") in (2, "STATUS_CODE_ERROR")
    read = Span(
        str(span.get("traceId")),
        str(span.get("spanId")),
        text(span.get("parentSpanId")),
        str(span.get("name")),
        _microseconds_of(span.get("startTimeUnixNano")),
        _microseconds_of(span.get("endTimeUnixNano")),
        error=(text(status.get("message")) or "it failed") if failed else None,
    )
    attributes = _attributes(span.get("attributes"))
    _take_attributes(read, attributes)
    if not read.messages:
        events = sorted(objects(span.get("events")), key=lambda each: _whole(each.get("timeUnixNano")) or 0)
        read.messages = [made for each in events if (made := _event(each)) is not None]
    return read


def _take_attributes(span: Span, attributes: Mapping[str, Any]) -> None:
    """Read what the attributes of a span say, by the GenAI conventions, or by OpenInference's."""
    nested = _nested(attributes)
    kind = str(attributes.get("openinference.span.kind", "")).upper()
    operation = attributes.get("gen_ai.operation.name")
    span.agent = text(attributes.get("gen_ai.agent.name") or attributes.get("agent.name"))
    if kind == "AGENT" and span.agent is None:
        span.agent = span.name
    span.conversation = text(attributes.get("gen_ai.conversation.id") or attributes.get("session.id"))
    if operation == "execute_tool" or kind == "TOOL":
        span.tool = text(attributes.get("gen_ai.tool.name") or attributes.get("tool.name")) or span.name
        span.call = text(attributes.get("gen_ai.tool.call.id") or attributes.get("tool_call.id"))
        span.arguments = attributes.get("gen_ai.tool.call.arguments", attributes.get("input.value"))
        span.result = attributes.get("gen_ai.tool.call.result", attributes.get("output.value"))
        return
    given = [
        *_parts(attributes.get("gen_ai.input.messages")),
        *_parts(attributes.get("gen_ai.output.messages")),
        *(_flat(each) for each in objects(mapping(nested.get("gen_ai")).get("prompt"))),
        *(_flat({"role": "assistant", **each}) for each in objects(mapping(nested.get("gen_ai")).get("completion"))),
    ]
    llm = mapping(nested.get("llm"))
    for name in ("input_messages", "output_messages"):
        given += [_flat(mapping(each.get("message"))) for each in objects(llm.get(name))]
    span.messages = given if operation in _CHAT or kind == "LLM" or operation is None else []


def _parts(written: Any) -> Iterator[Body]:
    """Yield messages of the conventions, which come in parts; as JSON, or as they are."""
    for message in objects(decoded(written)):
        parts = objects(message.get("parts"))
        results = [each for each in parts if each.get("type") == "tool_call_response"]
        for each in results:
            content = each.get("response", each.get("result"))
            yield {"role": "tool", "tool_call_id": each.get("id"), "content": text(content)}
        if len(results) < len(parts) or not parts:
            yield {
                "role": message.get("role"),
                "content": "\n".join(str(each.get("content")) for each in parts if each.get("type") == "text") or None,
                "thinking": "\n".join(str(e.get("content")) for e in parts if e.get("type") == "reasoning") or None,
                "tool_calls": [
                    {"id": each.get("id"), "name": each.get("name"), "arguments": each.get("arguments")}
                    for each in parts
                    if each.get("type") == "tool_call"
                ],
            }


def _flat(message: Mapping[str, Any]) -> Body:
    """Write a message of OpenInference or of flat attributes as chat completions have it."""
    contents = [text(mapping(each.get("message_content")).get("text")) for each in objects(message.get("contents"))]
    calls = []
    for each in objects(message.get("tool_calls")):
        call = mapping(each.get("tool_call")) or each
        function = mapping(call.get("function")) or call
        calls.append({"id": call.get("id"), "name": function.get("name"), "arguments": function.get("arguments")})
    written: Body = {
        "role": message.get("role"),
        "content": message.get("content") or "\n".join(filter(None, contents)),
    }
    if calls:
        written["tool_calls"] = calls
    if message.get("tool_call_id"):
        written["tool_call_id"] = message["tool_call_id"]
    return written


def _event(event: Mapping[str, Any]) -> Body | None:
    """Read a message that an event of a span holds, as earlier conventions have it."""
    name = str(event.get("name"))
    attributes = _attributes(event.get("attributes"))
    given = mapping(decoded(attributes.get("gen_ai.event.content"))) or attributes
    if name in _SAID:
        return {"role": _SAID[name], "content": given.get("content"), "tool_call_id": given.get("id")}
    if name == "gen_ai.assistant.message" or name == "gen_ai.choice":
        message = mapping(decoded(given.get("message"))) or given
        return _flat({"role": "assistant", **message, "tool_calls": decoded(message.get("tool_calls"))})
    return None


def _attributes(given: Any) -> dict[str, Any]:
    return {str(each.get("key")): _value(mapping(each.get("value"))) for each in objects(given)}


def _value(value: Mapping[str, Any]) -> Any:
    for name, given in value.items():
        if name == "arrayValue":
            return [_value(each) for each in objects(mapping(given).get("values"))]
        if name == "kvlistValue":
            return _attributes(mapping(given).get("values"))
        return _whole(given) if name == "intValue" else given
    return None


def _nested(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Build objects and lists of attributes whose names have dots and numbers."""
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        node = tree
        *path, last = name.split(".")
        for part in path:
            inner = node.setdefault(part, {})
            if not isinstance(inner, dict):
                break
            node = inner
        else:
            node.setdefault(last, value)
    return mapping(_listed(tree))  # type: ignore[return-value]


def _listed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node and all(name.isdecimal() for name in node):
        return [_listed(node[name]) for name in sorted(node, key=int)]
    return {name: _listed(each) for name, each in node.items()}


def _whole(value: Any) -> int | None:
    try:
        return int(value)
    except (OverflowError, TypeError, ValueError):
        return None


def _microseconds_of(nanoseconds: Any) -> int | None:
    return None if (whole := _whole(nanoseconds)) is None else whole // 1000


# Phoenix and Langfuse.


def is_phoenix(each: Any) -> bool:
    """Tell whether this is a span as Phoenix exports it."""
    return isinstance(each, Mapping) and isinstance(each.get("context"), Mapping) and "span_kind" in each


def phoenix_span(span: Mapping[str, Any]) -> Span:
    """Read a span of Phoenix."""
    context = mapping(span.get("context"))
    failed = span.get("status_code") == "ERROR"
    read = Span(
        str(context.get("trace_id")),
        str(context.get("span_id")),
        text(span.get("parent_id")),
        str(span.get("name")),
        microseconds(span.get("start_time")),
        microseconds(span.get("end_time")),
        error=(text(span.get("status_message")) or "it failed") if failed else None,
    )
    attributes = dict(_leaves(mapping(span.get("attributes"))))
    _take_attributes(read, {"openinference.span.kind": span.get("span_kind"), **attributes})
    return read


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping) and node:
        for name, each in node.items():
            yield from _leaves(each, f"{path}.{name}" if path else str(name))
    elif isinstance(node, list) and any(isinstance(each, Mapping) for each in node):
        for number, each in enumerate(node):
            yield from _leaves(each, f"{path}.{number}")
    else:
        yield path, node


def langfuse_span(each: Mapping[str, Any], trace: str) -> Span:
    """Read an observation of Langfuse."""
    kind = str(each.get("type", "")).upper()
    given, said = decoded(each.get("input")), decoded(each.get("output"))
    failed = each.get("level") == "ERROR"
    read = Span(
        trace,
        str(each.get("id")),
        text(each.get("parentObservationId")),
        str(each.get("name")),
        microseconds(each.get("startTime")),
        microseconds(each.get("endTime")),
        agent=text(each.get("name")) if kind == "AGENT" else None,
        error=(text(each.get("statusMessage")) or "it failed") if failed else None,
    )
    if kind == "TOOL":
        read.tool, read.arguments, read.result = read.name, given, said
    elif kind == "GENERATION":
        asked = given.get("messages") if isinstance(given, Mapping) else given
        answers = said if isinstance(said, list) else [said]
        read.messages = [_flat(message) for message in objects(asked)]
        read.messages += [
            _flat({"role": "assistant", **answer})
            if isinstance(answer, Mapping)
            else {"role": "assistant", "content": answer}
            for answer in answers
            if answer is not None
        ]
        if isinstance(asked, str):
            read.messages.insert(0, {"role": "user", "content": asked})
    return read


# Documents: which form one has, and the sessions in it.

NO_CALLS = "trace without a call of a model"
_ENDS = {
    **dict.fromkeys(("done", "finished", "ok", "success", "succeeded"), "completed"),
    **dict.fromkeys(("error", "incomplete"), "failed"),
}
_ITEMS = ("message", "function_call", "function_call_output", "reasoning")


@generic.refusing()
def bodies(document: Any, name: str) -> list[Body] | None:
    """Write a document as generic bodies; None where it is no history. Raises RefusedError where it holds no call."""
    if isinstance(document, list):
        if document and all(_is_message(each) for each in document):
            return [_history(document, {}, name)]
        if document and all(isinstance(each, Mapping) and "observations" in each for each in document):
            return [_of_langfuse(each) for each in document]
        return _of_traces(map(phoenix_span, document), {}) if document and all(map(is_phoenix, document)) else None
    if not isinstance(document, Mapping):
        return None
    if isinstance(document.get("resourceSpans"), list):
        return _of_traces(*otlp_spans(document))
    if "observations" in document and isinstance(document["observations"], list):
        return [_of_langfuse(document)]
    if isinstance(spans := document.get("data"), list) and spans and all(map(is_phoenix, spans)):
        return _of_traces(map(phoenix_span, spans), {})
    for key in ("messages", "input"):
        given = document.get(key)
        if "alert" not in document and isinstance(given, list) and given and all(map(_is_message, given)):
            more = document.get("output")
            return [_history([*given, *(more if isinstance(more, list) else [])], document, name)]
    return None


def _is_message(each: Any) -> bool:
    return isinstance(each, Mapping) and (isinstance(each.get("role"), str) or each.get("type") in _ITEMS)


# Messages.


def _history(messages: Sequence[Any], about: Mapping[str, Any], name: str) -> Body:
    """Write messages as a session: the first of the user is what it was about, later ones are events."""
    system = text(about.get("system"))
    return _session(
        text(about.get("session_id") or about.get("conversation_id") or about.get("id")) or name,
        [_message(each) for each in objects(messages)],
        agent=text(about.get("agent") or about.get("model")),
        tools=objects(about.get("tools")),
        system=system,
        status=_status(about.get("status")),
    )


def _status(given: Any) -> str:
    """Name the status of a session as a generic body does; words that no API uses for an end stay what they are."""
    word = given.strip().lower() if isinstance(given, str) else ""
    return _ENDS.get(word, word) or "completed"


def _message(item: Mapping[str, Any]) -> Body:
    """Write an item of the Responses API as a message; a message stays as it is."""
    kind = item.get("type")
    if kind == "function_call":
        call = {"id": item.get("call_id"), "name": item.get("name"), "arguments": item.get("arguments")}
        return {"role": "assistant", "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    if kind == "reasoning":
        thought = generic.content_text(item.get("summary") or item.get("content") or [])
        return {"role": "assistant", "thinking": thought}
    return dict(item)


def _session(session_id: str, messages: list[Body], **more: Any) -> Body:
    system = more.pop("system", None)
    alert = system
    kept: list[Body] = []
    for each in messages:
        said = _users_text(each)
        if each.get("role") == "user" and said:
            if alert is None or alert == system:
                alert = said
            else:
                kept.append({"role": "event", "content": f"the user says: {said}", "agent": each.get("agent")})
        if each.get("role") not in ("system", "developer"):
            kept.append(each)
    given = {name: value for name, value in more.items() if value}
    return {"session_id": session_id, "alert": alert or "", "messages": kept, **given}


def _users_text(message: Mapping[str, Any]) -> str | None:
    content = message.get("content")
    if not isinstance(content, list):
        return text(content)
    return generic.content_text([part for part in content if not isinstance(part, Mapping) or "text" in part])


# Traces: spans of calls to models and of tools, in one form.


def _of_traces(spans: Iterator[Span], services: Mapping[str, str]) -> list[Body]:
    by_trace: dict[str, list[Span]] = {}
    for each in spans:
        by_trace.setdefault(each.trace, []).append(each)
    by_session: dict[str, list[Span]] = {}
    for trace, own in by_trace.items():
        named = next((each.conversation for each in own if each.conversation), trace)
        by_session.setdefault(named, []).extend(own)
    found = [
        _of_spans(name, own, services.get(own[0].trace)) for name, own in by_session.items() if any(map(_tells, own))
    ]
    if not found:
        raise generic.RefusedError(NO_CALLS)
    return found


def _tells(span: Span) -> bool:
    return bool(span.messages) or span.tool is not None


def _of_spans(session_id: str, spans: Sequence[Span], service: str | None) -> Body:
    known = {each.span: each for each in spans}
    usual = next((each.agent for each in spans if each.agent), None) or service or "agent"
    messages: list[Body] = []
    seen: dict[str, Counter[str]] = {}  # by agent: how often each message stands already
    open_calls: dict[str, str] = {}  # call -> its tool, until its result is there
    for span in sorted(spans, key=lambda each: (each.start or 0, each.end or 0)):
        agent = _agent_of(span, known) or usual
        told = seen.setdefault(agent, Counter())
        here: Counter[str] = Counter()
        for message in span.messages:
            key = _key(message)
            here[key] += 1
            if here[key] <= told[key]:
                continue
            told[key] += 1
            if message.get("role") == "tool" and (call_id := text(message.get("tool_call_id"))):
                if call_id not in open_calls and told.get(f"answered {call_id}"):
                    continue
                open_calls.pop(call_id, None)
                told[f"answered {call_id}"] += 1
            for call in objects(message.get("tool_calls")):
                open_calls[str(call.get("id"))] = str(call.get("name"))
            at = span.end if message.get("role") == "assistant" else span.start
            messages.append({"at": at, **message, "agent": agent})
        if span.tool is not None:
            messages += _of_tool(span, agent, told, open_calls)
    roots = [each for each in spans if each.parent not in known]
    failed = any(each.error for each in roots)
    return _session(session_id, messages, agent=usual, status="failed" if failed else "completed")


def _of_tool(span: Span, agent: str, told: Counter[str], open_calls: dict[str, str]) -> Iterator[Body]:
    """Yield what a span of a tool adds: its result, and its call where no model's reply has it."""
    call = span.call or next((each for each, tool in open_calls.items() if tool == span.tool), None) or span.span
    if call not in open_calls and not told[f"answered {call}"]:
        made = {"id": call, "name": span.tool, "arguments": span.arguments}
        yield {"role": "assistant", "tool_calls": [made], "at": span.start, "agent": agent}
        open_calls[call] = str(span.tool)
    if (span.result is not None or span.error) and not told[f"answered {call}"]:
        open_calls.pop(call, None)
        told[f"answered {call}"] += 1
        result = {"role": "tool", "tool_call_id": call, "content": text(span.result), "error": span.error}
        yield {**result, "at": span.end, "agent": agent}


def _agent_of(span: Span, known: Mapping[str, Span]) -> str | None:
    above: Span | None = span
    for _ in range(len(known) + 1):
        if above is None or above.agent:
            break
        above = known.get(above.parent or "")
    return None if above is None else above.agent


def _key(message: Mapping[str, Any]) -> str:
    if message.get("role") == "tool":
        return f"tool {message.get('tool_call_id')}"
    return generic.as_json(
        [message.get("role"), _users_text(message), [c.get("id") for c in objects(message.get("tool_calls"))]]
    )


def _of_langfuse(trace: Mapping[str, Any]) -> Body:
    spans = [langfuse_span(each, str(trace.get("id"))) for each in objects(trace.get("observations"))]
    if not any(map(_tells, spans)):
        raise generic.RefusedError(NO_CALLS)
    body = _of_spans(str(trace.get("id")), spans, text(trace.get("name")))
    if not body["alert"] and trace.get("input") is not None:
        body["alert"] = text(trace["input"])
    return body
