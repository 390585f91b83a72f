"""Code inside code: how deep and how much of it is followed, and what a check may leave for later commands."""

import pytest

from suites.command_guard.baselines.shell_patterns.model import Decision
from suites.command_guard.baselines.shell_patterns.scope import MAX_DEPTH, Scope, block, warn


def follow(code: str, scope: Scope) -> Decision:
    """A judge that finds the same code inside itself."""
    return scope.judge(code)


def test_code_nested_beyond_honest_need_is_blocked_and_the_depth_put_back() -> None:
    scope = Scope(follow)
    decision = scope.judge("x")
    assert (decision.action, decision.rule) == ("BLOCK", "nested-too-deep")
    assert scope.depth == 0


def test_what_is_not_looked_at_for_its_length_is_a_warning() -> None:
    scope = Scope(lambda code, scope: block("seen", "It was looked at.", 0.9), budget=10)
    assert scope.judge("x" * 64 * 5).rule == "seen"
    assert scope.judge("x" * 64 * 5).rule == "too-many-commands"
    assert scope.judge("").action == "WARN", "what is spent does not come back"


def test_the_depth_is_put_back_where_a_check_fails() -> None:
    def fail(code: str, scope: Scope) -> Decision:
        assert scope.depth <= MAX_DEPTH
        raise ValueError(code)

    scope = Scope(fail)
    with pytest.raises(ValueError, match="x"):
        scope.judge("x")
    assert scope.depth == 0


def test_a_decision_says_its_rule_and_reason() -> None:
    assert block("rule", "Reason.", 0.8) == Decision("BLOCK", "Reason.", 0.8, "rule")
    assert warn("rule", "Reason.", 0.5) == Decision("WARN", "Reason.", 0.5, "rule")


def test_texts_share_nothing() -> None:
    first, second = Scope(follow), Scope(follow)
    first.planted["a"] = "b"
    first.fetched.add("c")
    first.variables["d"] = "e"
    assert (second.planted, second.fetched, second.variables) == ({}, set(), {})
