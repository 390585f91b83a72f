"""Histories of agents as generic sessions: messages of OpenAI's and Anthropic's APIs, and traces of calls.

* messages alone: a list, or an object with `messages` (chat completions, Anthropic) or `input` and `output` (Responses)
* OTLP JSON (`resourceSpans`) of GenAI spans by OpenTelemetry's conventions: attributes or events, and OpenInference's
* spans as Phoenix exports them, and traces with `observations` as Langfuse does

A trace repeats its history in each call of a model: every message counts once, each result with its call.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalake.suites.session_review.sources.generic import RefusedError, as_json, content_text, objects, text
from evalake.suites.session_review.sources.spans import Body, Span, is_phoenix, langfuse_span, otlp_spans, phoenix_span

NO_CALLS = "trace without a call of a model"
_ITEMS = ("message", "function_call", "function_call_output", "reasoning")


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
        status=about.get("status") if about.get("status") in ("failed", "cancelled") else "completed",
    )


def _message(item: Mapping[str, Any]) -> Body:
    """Write an item of the Responses API as a message; a message stays as it is."""
    kind = item.get("type")
    if kind == "function_call":
        call = {"id": item.get("call_id"), "name": item.get("name"), "arguments": item.get("arguments")}
        return {"role": "assistant", "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    if kind == "reasoning":
        thought = content_text(item.get("summary") or item.get("content") or [])
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
    return content_text([part for part in content if not isinstance(part, Mapping) or "text" in part])


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
        raise RefusedError(NO_CALLS)
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
            if message.get("role") == "tool" and message.get("tool_call_id"):
                if message["tool_call_id"] not in open_calls and told.get(f"answered {message['tool_call_id']}"):
                    continue
                open_calls.pop(message["tool_call_id"], None)
                told[f"answered {message['tool_call_id']}"] += 1
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
    return as_json(
        [message.get("role"), _users_text(message), [c.get("id") for c in objects(message.get("tool_calls"))]]
    )


def _of_langfuse(trace: Mapping[str, Any]) -> Body:
    spans = [langfuse_span(each, str(trace.get("id"))) for each in objects(trace.get("observations"))]
    if not any(map(_tells, spans)):
        raise RefusedError(NO_CALLS)
    body = _of_spans(str(trace.get("id")), spans, text(trace.get("name")))
    if not body["alert"] and trace.get("input") is not None:
        body["alert"] = text(trace["input"])
    return body
