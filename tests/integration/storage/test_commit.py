"""A change that lost a race is made again, and what the engine says of a refused row goes no further."""

from typing import Any

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from evalake.core.errors import ContractError, LakeError
from evalake.storage import commit as commits
from evalake.storage.commit import commit

WORDS: dict[str, Any] = {"busy": "others come first", "failed": "it cannot be written"}


def test_a_change_that_lost_races_is_made_again() -> None:
    errors = [CommitFailedError("lost"), CommitFailedError("lost")]

    def change() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert commit(change, **WORDS) == "done"


def test_who_loses_every_race_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commits, "PATIENCE_SECONDS", 0)

    def change() -> None:
        raise CommitFailedError("lost")

    with pytest.raises(LakeError, match=r"^others come first$"):
        commit(change, **WORDS)


def test_a_refused_row_is_not_quoted() -> None:
    def change() -> None:
        raise DeltaError("failed validation check: {'secret': 'hunter2'}")

    with pytest.raises(ContractError, match=r"^a row is refused$") as caught:
        commit(change, **WORDS, refused="a row is refused")
    assert caught.value.__cause__ is None


def test_what_else_fails_is_said_with_the_engines_words() -> None:
    def change() -> None:
        raise OSError("disk full")

    with pytest.raises(LakeError, match=r"^it cannot be written: disk full$"):
        commit(change, **WORDS, refused="a row is refused")
