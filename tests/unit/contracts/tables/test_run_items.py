"""The manifest: a judge call may be unknown still, all other identities are hashes."""

from evalake.contracts.tables.runs import RUN_ITEMS
from tests.unit.contracts.tables.rows import SHA, broken_by


def test_an_item_is_known_by_hashes() -> None:
    for column in ("item_id", "sample_hash", "prompt_hash"):
        assert broken_by(RUN_ITEMS, **{column: SHA[:-1]}) == [f"{column}_is_sha256"]


def test_the_judge_call_may_be_unknown_until_there_is_an_audit() -> None:
    assert broken_by(RUN_ITEMS, judge_hash=None) == []
    assert broken_by(RUN_ITEMS, judge=None, judge_hash=None) == []
