"""Who shares a provider's limits: nobody, until a process begins as one of several callers."""

import pytest

from tasks.runtime import sharing


def test_a_process_that_is_no_caller_shares_nothing() -> None:
    assert sharing.processes_sharing() == 1


def test_a_caller_shares_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "_processes", 1)
    sharing.share_with(3)
    assert sharing.processes_sharing() == 3
