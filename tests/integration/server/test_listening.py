"""Where a service listens: others may reach it only where it can tell who asks."""

from pathlib import Path

import pytest

from evalake.core.errors import UsageError
from evalake.server.listening import require_reachable_by_whom
from evalake.server.settings import Settings
from evalake.storage.lake import Lake


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_an_address_that_others_reach_needs_a_way_to_tell_who_asks(host: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"EVALAKE_API_TOKEN.* trusted_proxies"):
        require_reachable_by_whom(Settings(lake=Lake(str(tmp_path / "lake"))), host)
    require_reachable_by_whom(Settings(lake=Lake(str(tmp_path / "lake")), token="secret"), host)
