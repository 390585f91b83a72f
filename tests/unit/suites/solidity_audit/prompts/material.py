"""Prompts of judges about an audit."""

from evalake.models.request import Request
from evalake.suites.solidity_audit.prompts import converse
from tests.unit.suites.solidity_audit.support import conversation


def judge_prompt(audit: str, **more: object) -> Request:
    item, answered = conversation([], audit, **more)
    request = converse(item, answered, {})
    assert request is not None
    return request
