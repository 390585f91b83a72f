"""Write-audit-publish: good rows land once, bad ones are put aside with their rules, and each rule has a record."""

from pathlib import Path

import pytest

from evalake.contracts.tables import CONTRACT_CHECKS, QUARANTINE
from evalake.storage.lake import Lake
from evalake.tasks.publish import publish
from tests.integration.storage.rows import TOYS, toy


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def test_a_bad_row_is_put_aside_and_the_others_land(lake: Lake) -> None:
    rows = [toy("good"), toy("bad", size=-1.0)]
    done = publish(lake, "run", TOYS, rows)
    assert (done.landed.inserted, done.quarantined) == (1, 1)
    assert lake.frame(TOYS).collect()["key"].to_list() == ["good"]
    (refused,) = lake.frame(QUARANTINE).collect().to_dicts()
    assert (refused["table_name"], refused["rules"]) == ("toys", ["size_not_negative"])
    assert '"bad"' in refused["payload"]
    checks = {row["rule_id"]: row["passed"] for row in lake.frame(CONTRACT_CHECKS).collect().to_dicts()}
    assert checks["size_not_negative"] is False


def test_a_key_that_was_decoded_into_a_column_is_in_no_table(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEONES_API_KEY", "of-somebody-else-27182")
    publish(lake, "run", TOYS, [toy("says of-somebody-else-27182"), toy("of-somebody-else-27182", size=-1.0)])
    assert lake.frame(TOYS).collect()["key"].to_list() == ["says [redacted]"]
    assert "of-somebody-else-27182" not in str(lake.frame(QUARANTINE).collect().to_dicts())
