"""A run in shards is refused before it begins where it could not go on later."""

import pytest

from core.errors import ConfigurationError
from flows.shards import PATIENCE, require_shards


def test_a_patience_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATIENCE, "two minutes")
    with pytest.raises(ConfigurationError, match=f"{PATIENCE} is a number of seconds, not two minutes"):
        require_shards(2)
