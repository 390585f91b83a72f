"""The rules of each table as they fared when it was checked last."""

from pathlib import Path

import httpx

from evalake.contracts.audit import audit
from evalake.contracts.tables import SAMPLES
from evalake.server.viewer.decided import last_checks
from evalake.storage.lake import Lake
from evalake.tasks.publish import record_checks
from tests.integration.storage.recorded_lake import recorded_lake


def test_tables_that_broke_a_rule_come_first_with_every_rule_in_words(http: httpx.Client) -> None:
    runs, samples = http.get("/checks").json()
    assert (runs["table"], runs["broken"], samples["table"], samples["broken"]) == ("runs", 1, "samples", 0)
    (broken,) = [rule for rule in runs["rules"] if not all(result["passed"] for result in rule["results"])]
    assert broken["demands"] == "cost_usd is at least 0"
    assert broken["results"][0]["rows_failed"] == runs["rows"] == 3
    assert [rule["rule_id"] for rule in samples["rules"]] == [rule.id for rule in SAMPLES.all_rules]


def test_of_two_checks_the_newer_version_counts(tmp_path: Path) -> None:
    lake = recorded_lake(tmp_path)
    rows = lake.frame(SAMPLES).collect()
    for version, some in ((1, rows.head(3)), (2, rows)):
        record_checks(lake, SAMPLES, audit(some, SAMPLES).results, table_version=version)
    (table,) = last_checks(lake)
    assert (table.version, table.rows, table.broken) == (2, rows.height, 0)


def test_a_lake_that_nobody_checked_has_none(tmp_path: Path) -> None:
    assert last_checks(Lake(str(tmp_path / "lake"))) == []
