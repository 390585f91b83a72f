"""Thinking is told from what a reply says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalake.sdk.json_in_text import split_thinking


@pytest.mark.parametrize(
    ("text", "outside", "inside"),
    [
        ("plain < 1", "plain < 1", ""),
        ('{"action": <think>hm</think>"block"}', '{"action": "block"}', "hm"),
        ("<THINK>a</Think>b<think>c</think>d", "bd", "ac"),
        ("a<think>b", "a", "b"),
        ("a</think>b", "b", "a"),
        ("<think>a<think>b</think>c</think>d", "cd", "ab"),
        ("<think>", "", ""),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>BLOCK", "BLOCK", "hm"),
        ("<|start|>assistant<|channel|>final <|constrain|>JSON<|message|>{}<|return|>", "{}", ""),
        ("<|channel|>analysis hm <|channel|>final BLOCK", " BLOCK", " hm "),
        ("<|channel|>commentary to=x<|message|>a<|call|><|channel|>analysis<|message|>b", "", "ab"),
        ("<|channel|>final<|message|>a<think>b</think>c", "ac", "b"),
        ("analysisWe need ALLOW?assistantfinalBLOCK", "BLOCK", "We need ALLOW?"),
        ("an analysis of the assistantfinal mark", "an analysis of the assistantfinal mark", ""),
    ],
)
def test_thinking_is_taken_out_without_a_trace(text: str, outside: str, inside: str) -> None:
    assert split_thinking(text) == (outside, inside)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<THINK>", "<", "a", "b"])).map("".join))
def test_nothing_but_tags_is_lost(text: str) -> None:
    outside, inside = split_thinking(text)
    kept = text.lower().replace("<think>", "").replace("</think>", "")
    assert sorted(outside.lower() + inside.lower()) == sorted(kept)
