"""Keys in Prefect's Secret blocks: what is said where there can be none."""

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from evalake.core.errors import ProviderError
from evalake.tasks.runtime.server import read_secret


def test_without_a_server_it_is_said_where_the_block_would_be() -> None:
    with (
        temporary_settings({PREFECT_API_URL: None}),
        pytest.raises(ProviderError, match="the Secret block my-key is on a Prefect server: set PREFECT_API"),
    ):
        read_secret("my-key")
