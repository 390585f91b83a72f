"""`evalake roadmap`: what it prints, its JSON, and that a rerun finds the same."""

import json
from pathlib import Path

from evalake.storage.lake import Lake
from tests.integration.admin.roadmap.scored import absent, land_scores
from tests.integration.cli.command import evalake_here


def test_it_prints_the_themes_by_cost_and_writes_the_page(tmp_path: Path, prefect_api: str) -> None:
    land_scores(Lake(str(tmp_path / "lake")), ("a", 40, absent("x-ray")), ("b", 60, absent("y-scan")))
    server = {"PREFECT_API_URL": prefect_api, "COLUMNS": "80"}
    done = evalake_here("roadmap", "--out", "pages", folder=tmp_path, **server)
    assert done.returncode == 0, done.stderr
    assert "Tool roadmap: 2 scored samples, grouped by the words in common" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.index("x-ray") < done.stdout.index("y-scan")
    (page,) = (tmp_path / "pages").glob("*/roadmap.html")
    assert f"report: pages/{page.parent.name}/roadmap.html" in done.stdout
    again = json.loads(evalake_here("roadmap", "--json", folder=tmp_path, **server).stdout)
    assert again == json.loads(page.with_suffix(".json").read_text())


def test_an_empty_lake_and_a_suite_without_a_roadmap_are_told(tmp_path: Path, prefect_api: str) -> None:
    done = evalake_here("roadmap", folder=tmp_path, PREFECT_API_URL=prefect_api)
    assert (done.returncode, done.stdout) == (0, "")
    assert "has no scored results of session_review with gaps" in done.stderr
    refused = evalake_here("roadmap", "--suite", "command_guard", folder=tmp_path)
    assert refused.returncode == 2
    assert "command_guard has no roadmap: choose one of session_review" in refused.stderr
