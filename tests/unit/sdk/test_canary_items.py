"""Frozen items: they are what they were, a suite can judge each of them, and every kind of answer is among them."""

import hashlib
from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.suites.registry import canary_items, canary_suites, suite
from evalake.suites.solidity_audit.truth import truth_of

SUITES = Path(__file__).resolve().parents[3] / "evalake" / "suites"

# Who changes an item on purpose changes the digest, too: every judge's canary then begins with new answers.
DIGESTS = {
    "session_review": "e68cc936464ef1cb6feb7604b66396a0c071efa5f82e51934815b7c8f9b5837b",
    "solidity_audit": "ba70424d9a92916a6e74dd7d6a42e01b6564e277586b6892346bb6c9915cd152",
}


def test_they_are_what_they_were() -> None:
    files = {name: hashlib.sha256((SUITES / name / "canary.jsonl").read_bytes()).hexdigest() for name in DIGESTS}
    assert files == DIGESTS
    assert set(canary_suites()) >= DIGESTS.keys()


@pytest.mark.parametrize("name", DIGESTS)
def test_the_next_request_about_each_is_to_the_judge(name: str) -> None:
    of = suite(name)
    items = canary_items(name, "provider/judge", 7)
    requests = [of.conversation.next_request(item, answered, of.options) for item, answered in items]
    assert {request.model for request in requests if request} == {"provider/judge"}
    assert len({request.prompt_hash for request in requests if request}) == len(items)
    assert {item.replicate for item, _ in items} == {7}


def test_audits_right_and_wrong_of_vulnerable_and_safe_contracts() -> None:
    items = canary_items("solidity_audit", "provider/judge", 0)
    vulnerable = [truth_of(item.sample).is_vulnerable for item, _ in items]
    assert (len(items), sum(vulnerable)) == (24, 18)
    assert len({item.sample.cluster for item, _ in items}) == len(items)  # no two twins


def test_a_suite_without_frozen_items_is_named() -> None:
    with pytest.raises(UsageError, match="command_guard has no frozen items"):
        canary_items("command_guard", "provider/judge", 0)
