"""Where sessions come from. What a body holds is counted here, against what was read of it.

A session that lost something is none to judge.

The body is searched by the field names of all forms, wherever they stand: a form that a reader does not know yet shows
as something lost. Values that others wrote, like arguments, results and alerts, are not searched.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalake.sdk.json_in_text import mapping, objects
from evalake.suites.session_review.session import AgentMessage, Interaction, Session, ToolCall
from evalake.suites.session_review.sources import generic
from evalake.suites.session_review.sources.tarsy import is_for_judge_or_summary, is_left_out

ROLES = ("assistant", "tool", "event", "system", "developer", "user")
CALLS = (generic.USE, "function_call", "functionCall", "toolUse")
RESULTS = (generic.RESULT, "function_call_output", "functionResponse", "function_response", "toolResult")
CAME_BACK = ("tool_result", "tool_output", "observation", "output", "result")
ELSEWHERE = ("text", "parts", "message", "output")  # where other systems keep what an agent said
OTHERS_WROTE = (
    *("alert", "alert_data", "arguments", "available_tools", "final_analysis", "input", "runbook", "tools"),
    *("tool_arguments", "tool_result", "llm_request", "llm_response", "response_metadata"),
)


@dataclass
class _Held:
    """What was found in a body. Recorded calls and those in messages may be the same ones."""

    said: set[str] = field(default_factory=set)
    strange: int = 0  # messages of unknown roles
    recorded: dict[str, str | None] = field(default_factory=dict)  # results of recorded calls
    calls: set[str] = field(default_factory=set)  # in messages
    results: set[str] = field(default_factory=set)  # in messages

    def search(self, node: Any, path: str = "") -> None:
        if isinstance(node, list):
            for number, each in enumerate(node):
                self.search(each, f"{path}.{number}")
        elif isinstance(node, Mapping) and not _is_left_out(node):
            if "role" in node:
                self._message(node, path)
            elif _is_recorded_call(node):
                self._recorded_call(node)
            self._blocks(node, path)
            response = mapping(node.get("llm_response"))
            is_told = "conversation" in node or "messages" in node or path.endswith(".meta")
            if not is_told and response.get("text_length") and not response.get("text"):
                self.strange += 1  # it was said, and is not told
            for name, value in node.items():
                if name == "conversation" and isinstance(value, Mapping):  # each call repeats it; only the end is new
                    self.search(objects(value.get("messages"))[-1:], f"{path}.{name}")
                elif name == "messages" and "meta" in node:  # likewise
                    self.search(objects(value)[-1:], f"{path}.{name}")
                elif name == "messages" and isinstance(value, list):
                    self.strange += sum(1 for each in value if each and not mapping(each).get("role"))
                    self.search(value, f"{path}.{name}")
                elif name == "session_level_interactions":
                    self.search([each for each in objects(value) if each.get("type") == "mcp"], f"{path}.{name}")
                elif name not in OTHERS_WROTE and name not in (*CALLS, *RESULTS):
                    self.search(value, f"{path}.{name}")

    def _message(self, node: Mapping[str, Any], path: str) -> None:
        content = node.get("content")
        if node["role"] == "assistant":
            if (said := generic.content_text(content)) is not None:
                self.said.add(said)
            elif not node.get("tool_calls"):
                self.strange += any(node.get(name) for name in ELSEWHERE)
            calls = generic.decoded(node.get("tool_calls"))
            self.strange += bool(calls) and not objects(calls)
            made = enumerate(objects(calls))
            self.calls |= {_name(call.get("id"), f"{path}.{number}") for number, call in made}
        elif node["role"] == "tool":
            if generic.content_text(content) is not None or node.get("error"):
                self.results.add(_name(node.get("tool_call_id"), path))
        elif node["role"] not in ROLES and content:
            self.strange += 1

    def _blocks(self, node: Mapping[str, Any], path: str) -> None:
        kind = node.get("type")
        for found, names in ((self.calls, CALLS), (self.results, RESULTS)):
            if isinstance(kind, str) and kind.endswith(names):
                given = node.get("tool_use_id") or node.get("call_id") or node.get("id")
                told = generic.content_text(node.get("content")) or node.get("output") or node.get("is_error")
                if found is self.calls or told:
                    found.add(_name(given, path))
            elif "tool_name" not in node:
                found |= {f"{path}.{name}" for name in names if isinstance(node.get(name), Mapping)}

    def _recorded_call(self, node: Mapping[str, Any]) -> None:
        meta, sections = mapping(node.get("meta")) or node, mapping(node.get("sections"))
        told = next((node[name] for name in CAME_BACK if name in node), None)
        result = generic.decoded(sections.get("TOOL_RESULT")) if sections else told
        given = meta.get("communication_id") or meta.get("id")
        self.recorded[given if isinstance(given, str) else generic.as_json(node)] = generic.result_text(result)


def require_whole(body: Any, session: Session) -> None:
    """Raise RefusedError, which says how many, where messages, tool calls or their results were not read."""
    held = _Held()
    held.search(body)
    read = [*session.interactions, *(each for stage in session.afterwards or () for each in _all(stage.agents))]
    called = [each for each in read if isinstance(each, ToolCall)]
    said = {each.text for each in read if isinstance(each, AgentMessage)}
    answered = Counter(each.result for each in called if each.result is not None)
    recorded = Counter(result for result in held.recorded.values() if result is not None)
    with_answer = sum(1 for each in called if each.result is not None or each.error is not None)
    lost_results = max((recorded - answered).total(), len(held.results) - with_answer)
    calls = max(len(held.recorded), len(held.calls))
    unsaid = sum(1 for each in held.said - said if generic.spoken_text(each) not in said | {None})
    lost = [
        (unsaid + held.strange, len(held.said) + held.strange, "messages"),
        (calls - len(called), calls, "tool calls"),
        (lost_results, max(recorded.total(), len(held.results)), "tool results"),
    ]
    told = [f"{count} of {whole} {what}" for count, whole, what in lost if count > 0]
    if told:
        raise generic.RefusedError(f"unread: {' and '.join(told)}")


def _all(stages: Iterable[Any]) -> Iterable[Interaction]:
    return (each for stage in stages for each in stage.interactions)


def _is_left_out(node: Mapping[str, Any]) -> bool:
    is_stage = "stage_name" in node and "role" not in node
    kind = node.get("interaction_type")
    return (is_stage and is_left_out(node)) or (isinstance(kind, str) and is_for_judge_or_summary(kind))


def _is_recorded_call(node: Mapping[str, Any]) -> bool:
    meta = mapping(node.get("meta")) or node
    kind = meta.get("communication_type") or meta.get("interaction_type")
    told = "server_name" in meta or any(name in node for name in CAME_BACK)
    return told and "tool_name" in meta and kind != "tool_list"


def _name(given: Any, path: str) -> str:
    return generic.text(given) or path
