"""Spans of calls to models and of tools, as OTLP JSON, Phoenix and Langfuse have them, in one form."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalake.suites.session_review.sources.generic import decoded, mapping, microseconds, objects, text

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
        events = sorted(objects(span.get("events")), key=lambda each: int(each.get("timeUnixNano") or 0))
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
    contents = [mapping(each.get("message_content")).get("text") for each in objects(message.get("contents"))]
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
    name = event.get("name")
    attributes = _attributes(event.get("attributes"))
    given = mapping(decoded(attributes.get("gen_ai.event.content"))) or attributes
    if name in _SAID:
        return {"role": _SAID[str(name)], "content": given.get("content"), "tool_call_id": given.get("id")}
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
        return int(given) if name == "intValue" else given
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


def _microseconds_of(nanoseconds: Any) -> int | None:
    try:
        return int(nanoseconds) // 1000
    except (TypeError, ValueError):
        return None


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
