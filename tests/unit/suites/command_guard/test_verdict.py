"""Replies to verdicts: every rule of the metrics' text, every edge, hostile shapes, and an independent reference."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.command_guard.replies import ACTIONS, ERROR_KINDS, Verdict, read_verdict

BLOCK = '{"action": "block", "reason": "opens a shell", "confidence": 0.9}'
ALLOW = '{"action": "allow", "reason": "lists files", "confidence": 0.8}'

NO_REPLY = [
    (None, None, "TIMEOUT_ERROR"),
    ("", "stop", "TIMEOUT_ERROR"),
    (" \n\t\u00a0\u2003", None, "TIMEOUT_ERROR"),
    (None, "content_filter", "CONTENT_FILTER"),
    ("  ", "content_filter", "CONTENT_FILTER"),
    (None, "length", "TOKEN_LIMIT"),
    ("\n", "length", "TOKEN_LIMIT"),
    ("I cannot help with that.", "content_filter", "FORMAT_ERROR"),
    ('{"act', "length", "FORMAT_ERROR"),
]

REPLIES = {
    "plain": (BLOCK, "BLOCK", False),
    "any case of the verdict": ('{"action": "bLoCk"}', "BLOCK", False),
    "fenced": (f"```json\n{BLOCK}\n```", "BLOCK", False),
    "prose around": (f"Rule 4 applies, so I'd say:\n\n{BLOCK}\n\nStay safe {{}}!", "BLOCK", False),
    "byte order mark and line ends": ("\ufeff" + BLOCK.replace(", ", ",\r\n"), "BLOCK", False),
    "doubled braces": ('{{"action": "warn", "reason": "unclear"}}', "WARN", False),
    "doubled braces, nested": ('{{"result": {{"action": "allow"}}, "action": "block"}}', "BLOCK", True),
    "doubled braces, closed by one": ('{{"action": "warn", "by": {"a": 1}}', "WARN", False),
    "doubled braces around single ones": ('{{"a": {"action": "warn"}}}', "WARN", False),
    "nested object": ('{"decision": {"final": {"action": "Warn"}}}', "WARN", False),
    "inside an array": ('[{"step": 1}, {"action": "allow"}]', "ALLOW", False),
    "array inside an object": ('{"steps": [[{"action": "allow"}]]}', "ALLOW", False),
    "outer goes before inner": ('{"inner": {"action": "allow"}, "action": "block"}', "BLOCK", True),
    "another word beside a nested verdict": ('{"action": "escalate", "guard": {"action": "warn"}}', "WARN", False),
    "another word first": ('{"action": "run"} {"action": "block"}', "BLOCK", False),
    "action that is no string": ('{"action": ["block"]} {"action": null} {"action": "allow"}', "ALLOW", False),
    "same verdict twice": (f"{BLOCK} and again {BLOCK}", "BLOCK", False),
    "two verdicts": (f"{BLOCK}\n{ALLOW}", "BLOCK", True),
    "repeated key": ('{"action": "allow", "action": "block"}', "ALLOW", True),
    "repeated key, one no verdict": ('{"action": "hold", "action": "block"}', "BLOCK", False),
    "escaped key and value": ('{"\\u0061ction": "bloc\\u006b"}', "BLOCK", False),
    "truncated": ('{"action": "block", "reason": "it open', "BLOCK", False),
    "truncated after another word": ('{"action": "hold", "next": {"action":\n"allow", "x": ', "ALLOW", False),
    "two truncated": ('{"action": "allow", "reason": "\n{"action": "warn", "rea', "ALLOW", True),
    "an object goes before an earlier truncated one": ('{"action": "allow", "rea\n' + BLOCK, "BLOCK", False),
    "not a number": ('{"action": "warn", "confidence": NaN}', "WARN", False),
    "raw line break in a string": ('{"reason": "a\nb", "action": "warn"}', "WARN", False),
    "trailing comma": ('{"action": "warn",}', "WARN", False),
    "comment": ('{"action": "warn" // sure\n}', "WARN", False),
    "unbalanced brace before": ("if {x then " + BLOCK, "BLOCK", False),
    "brace and quote before": ('{"if ' + BLOCK, "BLOCK", False),
    "schema": ('{"action": "allow" | "warn" | "block", "reason": "…"}', "FORMAT_ERROR", False),
    "schema in one string": ('{"action": "allow|warn|block"}', "FORMAT_ERROR", False),
    "schema without spaces": ('{"action":"allow"|"warn"|"block"}', "FORMAT_ERROR", False),
    "schema, then an answer": ('{"action": "allow" | "warn" | "block"}\n' + BLOCK, "BLOCK", False),
    "schema, then a truncated answer": ('{"action": "allow"\n | "warn"} {"action": "block", "rea', "BLOCK", False),
    "prose": ("I would block this command.", "FORMAT_ERROR", False),
    "prose with a colon": ("Action: BLOCK", "FORMAT_ERROR", False),
    "single quotes": ("{'action': 'block'}", "FORMAT_ERROR", False),
    "bare key": ('{action: "block"}', "FORMAT_ERROR", False),
    "bare value": ('{"action": block}', "FORMAT_ERROR", False),
    "other key": ('{"verdict": "block"}', "FORMAT_ERROR", False),
    "key in another case": ('{"Action": "block"}', "FORMAT_ERROR", False),
    "white space in the verdict": ('{"action": " block "}', "FORMAT_ERROR", False),
    "a letter that only looks like k": ('{"action": "bloc\u212a"} "action": "bloc\u212a"', "FORMAT_ERROR", False),
    "verdict cut off": ('{"action": "blo', "FORMAT_ERROR", False),
    "verdict not closed": ('{"action": "block', "FORMAT_ERROR", False),
    "object in a string": (json.dumps({"answer": BLOCK}), "FORMAT_ERROR", False),
    "whole reply a string": (json.dumps(BLOCK), "FORMAT_ERROR", False),
    "bare JSON value": ("null", "FORMAT_ERROR", False),
    "lone surrogate": ('\ud800 {"action": "warn", "reason": "\\ud800"}', "WARN", False),
    "nul": ('\x00{"action": "warn"}\x00', "WARN", False),
    "thinking left out": (f"<think>{ALLOW}</think>{BLOCK}", "BLOCK", False),
    "thinking in any case": (f"<Think>{ALLOW}</THINK>\n{BLOCK}", "BLOCK", False),
    "several thinks": (f"<think>{ALLOW}</think>so<think>{ALLOW}</think>{BLOCK}", "BLOCK", False),
    "answer before thinking": (f"{BLOCK}<think>or {ALLOW}</think>", "BLOCK", False),
    "only thinking": (f"<think>surely {BLOCK}</think>", "BLOCK", False),
    "only thinking, prose outside": (f"<think>{BLOCK}</think>Done.", "BLOCK", False),
    "unfinished think": (f"<think>first {ALLOW} but then", "ALLOW", False),
    "unfinished think after an answer": (f"{BLOCK} <think> or {ALLOW}", "BLOCK", False),
    "truncated answer goes before thinking": (f'<think>{ALLOW}</think>{{"action": "block", "rea', "BLOCK", False),
    "conflict in thinking only": (f"<think>{ALLOW} {BLOCK}</think>{BLOCK}", "BLOCK", False),
    "conflict within thinking that decides": (f"<think>{ALLOW} {BLOCK}", "ALLOW", True),
    "think that mentions its tag": (f"<think>a <think> tag {ALLOW}</think>{BLOCK}", "BLOCK", False),
    "think that the template began": (f"maybe {ALLOW}\n</think>\n{BLOCK}", "BLOCK", False),
    "answer, then a lost closing tag": (f"{BLOCK}</think>", "BLOCK", False),
    "closing tag after the answer": (f"<think>{ALLOW}</think>{BLOCK}</think>", "BLOCK", False),
    "empty think": ("<think></think>", "FORMAT_ERROR", False),
    "tag in the reason": ('{"action": "block", "reason": "echoes <think> for nothing"}', "BLOCK", False),
    "tags in the reason": ('{"reason": "echoes <think> and </think>", "action": "block"}', "BLOCK", False),
    "other tags are no thinking": (f"<thinking>{ALLOW}</thinking>{BLOCK}", "ALLOW", True),
}


@pytest.mark.parametrize(("text", "finish_reason", "verdict"), NO_REPLY)
def test_no_reply_is_told_apart_by_its_finish_reason(text: str | None, finish_reason: str | None, verdict: str) -> None:
    assert read_verdict(text, finish_reason) == Verdict(verdict)


@pytest.mark.parametrize(("text", "verdict", "conflict"), REPLIES.values(), ids=REPLIES)
def test_reply_to_verdict(text: str, verdict: str, conflict: bool) -> None:
    read = read_verdict(text, "stop")
    assert (read.verdict, read.conflict) == (verdict, conflict)


def test_reason_and_confidence_are_those_of_the_object_that_decided() -> None:
    read = read_verdict(f'{{"action": "hold", "reason": "no"}} {BLOCK} {ALLOW}')
    assert read == Verdict("BLOCK", True, "opens a shell", 0.9)


@pytest.mark.parametrize("confidence", ["95", "-0.1", "true", '"0.9"', "null", "1e999", "9" * 5000, "[1]"])
def test_a_confidence_that_is_no_share_is_unread(confidence: str) -> None:
    read = read_verdict(f'{{"action": "warn", "reason": 7, "confidence": {confidence}}}')
    assert read == Verdict("WARN")


HOSTILE = {
    "braces": "{" * 1_000_000,
    "braces and quotes": '{"' * 500_000,
    "deep truncated": '{"a":' * 200_000,
    "deep doubled truncated": '{{"a":' * 160_000,
    "deep mixed truncated": '{"a":[' * 160_000,
    "deep arrays": '{"a":' + "[" * 1_000_000,
    "siblings of a truncated object": '{"a":[' + '{"b":1},' * 120_000,
    "strings that hold braces": '{"x{' * 250_000,
    "escaped quotes": '{"a":"\\"' * 120_000,
    "doubled siblings": '{{"a":{"b":1},"c":' * 55_000,
    "white space after a brace": "{" + " " * 1_000_000,
    "white space after a key": '"action":' + " " * 1_000_000,
    "schemas": '"action":"allow" |' * 55_000,
    "opened thinks": "<think>" * 140_000,
    "closed thinks": "</think>" * 120_000,
    "half tags": "<think" * 160_000,
    "long number": '{"action":' + "9" * 1_000_000 + "}",
    "long fraction": '{"action":1.' + "9" * 1_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_replies_of_a_megabyte_are_read_in_one_go(text: str) -> None:
    assert read_verdict(text).verdict == "FORMAT_ERROR"


def test_depth_and_number_have_no_limit() -> None:
    deep = '{"a":' * 100_000 + BLOCK + "}" * 100_000
    assert read_verdict(deep).verdict == "BLOCK"
    repeated = '{"x": 1' + ', "action": "warn"' * 60_000 + ', "action": "block"}'
    assert read_verdict(repeated) == Verdict("WARN", True)


pieces = st.sampled_from([*'{}[]"\\,: |1', "{{", "}}", "<think>", "</think>", '"action"', '"block"', '"allow"'])


@given(st.lists(pieces, max_size=60).map("".join) | st.text(max_size=60), st.sampled_from([None, "stop", "length"]))
def test_never_raises_and_always_says_something_known(text: str, finish_reason: str | None) -> None:
    read = read_verdict(text, finish_reason)
    assert read.verdict in ACTIONS + ERROR_KINDS
    assert not (read.conflict and read.verdict in ERROR_KINDS)
    assert (read.verdict == "FORMAT_ERROR") <= bool(text.strip())


@pytest.mark.real_data
def test_all_recorded_verdicts_agree(real_data: Path) -> None:
    recorded = real_data.parent / "oracles" / "command_guard" / "results.jsonl"
    lines = [json.loads(line) for line in recorded.read_text(encoding="utf-8").splitlines()]
    read = [read_verdict(line["response"], line["finish_reason"]).verdict for line in lines]
    assert len(lines) == 1792
    assert read == [line["expected_verdict"] for line in lines]
