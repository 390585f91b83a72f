"""Data docs of a check: every rule of every table by both engines, and what was found."""

import shutil
from pathlib import Path

import pytest

from evalake.admin.check import check_lake
from evalake.admin.data_docs import data_docs, leave_data_docs
from evalake.contracts.tables import METRIC_SNAPSHOTS, RUNS, SAMPLES
from evalake.storage.lake import Lake

pytestmark = pytest.mark.slow


def test_every_rule_is_told_of_each_engine_and_what_is_gone_is_found(recorded_runs: Lake, tmp_path: Path) -> None:
    lake = Lake(str(shutil.copytree(recorded_runs.uri, tmp_path / "lake")))
    checked = list(check_lake(lake, [SAMPLES, RUNS, METRIC_SNAPSHOTS]))
    whole = data_docs(lake, checked)
    assert (whole["findings"], sum(whole["snapshots"].values())) == (0, 3)
    samples = whole["tables"][0]
    known = [rule.id for rule in SAMPLES.all_rules]
    assert [rule["rule"] for rule in samples["rules"]] == known
    row_rules = samples["rules"][: len(SAMPLES.rules)]
    assert all(result["passed"] for rule in row_rules for result in rule["results"])
    assert samples["rows"] == lake.frame(SAMPLES).collect().height

    Path(lake.open(SAMPLES).file_uris()[0]).unlink()
    page = leave_data_docs(lake, list(check_lake(lake, [SAMPLES, RUNS])), tmp_path / "reports")
    assert 'samples: <span class="fail">1 found' in page.read_text(encoding="utf-8")
    assert leave_data_docs(lake, checked, tmp_path / "reports") == page, "the last check of a lake has one place"
    assert "found</span>" not in page.read_text(encoding="utf-8")
