"""What is to be forgotten is said in exactly one way."""

import pytest

from evalake.admin.forget import choose
from evalake.core.errors import UsageError
from evalake.tasks.runtime.context import RunContext


@pytest.mark.slow
@pytest.mark.parametrize("named", [(None, None, None), ("a", "b", None), ("", None, None), (None, None, "")])
def test_none_and_two_are_refused(guard: RunContext, named: tuple[str | None, ...]) -> None:
    with pytest.raises(UsageError, match="exactly one of --sample, --session and --dataset"):
        choose(guard.lake, *named)


def test_a_dataset_is_all_of_its_samples_with_their_texts(guard: RunContext) -> None:
    choice = choose(guard.lake, None, None, "mine")
    assert len(choice.hashes) == 40
    assert ("mine", "s7") in choice.names
    assert "command number 7" in choice.texts
