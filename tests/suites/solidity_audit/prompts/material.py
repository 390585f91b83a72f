"""Prompts of judges about an audit."""

from providers.request import Request
from suites.solidity_audit.conversation import converse
from tests.suites.solidity_audit.support import conversation


def judge_prompt(audit: str, **more: object) -> Request:
    item, answered = conversation([], audit, **more)
    request = converse(item, answered, {})
    assert request is not None
    return request
