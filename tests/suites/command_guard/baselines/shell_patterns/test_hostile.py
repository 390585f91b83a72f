"""Whatever the text, the guard decides: no exception, no endless work, and the same decision each time."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from suites.command_guard.baselines.shell_patterns import Decision, guard
from suites.command_guard.baselines.shell_patterns.arguments import _program

BRACKETS = ("$(", "`", "'", '"', "<(", "{", "}", "(", ")", "[[ ", "${x:-")
OPERATORS = ("|", "&&", ";", "\n", "\\", "!", ">", "5<>", "<<E\n", "E\n", "*")
WORDS = (
    "$a",
    "a=$a$a;",
    "a=($(",
    "set -- $@ a;",
    "cat ",
    "-e ",
    "/etc/",
    "echo x >f\n",
    "for x in ",
    "do ",
    "done",
    "case x in ",
)
RUNNERS = ("sh -c ", "sudo ", "eval ", "find . -exec ", "awk '", "python -c ", "vim\n")
FEEDERS = ("find / -name x -exec ", "echo {} | xargs -I{} ", "printf %s%s x | xargs -Ix xxxx")
PIECES = (*BRACKETS, *OPERATORS, *WORDS, *RUNNERS, *FEEDERS)


def is_sound(decision: Decision) -> bool:
    return (
        decision.action in {"ALLOW", "WARN", "BLOCK"}
        and 0 <= decision.confidence <= 1
        and bool(decision.reason and decision.rule)
    )


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=20_000))
@example("\ud800 cat /etc/shadow")
@example("\x00" * 20_000)
def test_any_text_gets_a_decision(text: str) -> None:
    assert is_sound(guard(text))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=200).map("".join))
def test_any_mixture_of_shell_syntax_gets_a_decision_and_always_the_same(text: str) -> None:
    decision = guard(text)
    assert is_sound(decision)
    assert guard(text) == decision


@pytest.mark.slow
@pytest.mark.parametrize("size", [8_000, 20_000, 1_000_000])
@pytest.mark.parametrize("piece", PIECES)
def test_deep_nesting_gets_a_decision(piece: str, size: int) -> None:
    assert is_sound(guard((piece * size)[:size]))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["x {{{}", 'x "{{{}"', "x a={{{}", "x {{a{}}}"])
def test_braces_that_never_close_cost_no_more_than_others(text: str) -> None:
    assert is_sound(guard(text.format("," * 190_000)))


def test_names_of_programs_are_not_kept_for_ever() -> None:
    """A guard asked for days must not remember every name that it ever read."""
    for number in range(6_000):
        guard(f"tool-{number} x")
    kept = _program.cache_info()
    assert kept.currsize <= 4_096


def test_binary_junk_gets_a_decision() -> None:
    generator = random.Random(7)
    for _ in range(20):
        assert is_sound(guard(generator.randbytes(4_000).decode("utf-8", "surrogateescape")))
