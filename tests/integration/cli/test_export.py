"""`evalake export`: contracts and results as files."""

import json
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.integration.cli.command import evalake_here, recorded
from tests.integration.cli.conftest import Imported


def test_contracts_are_exported(tmp_path: Path) -> None:
    done = evalake_here("export", "contracts", "--out", "odcs", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "odcs" / "command_guard_results.yaml").exists()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """A run of three right answers, one wrong and one missing."""
    lines = [recorded(n, action="BLOCK" if n % 2 == 0 else "ALLOW") for n in range(3)]
    lines += [recorded(3, command="=1+1"), recorded(4, action=None, error_kind="server")]
    folder = tmp_path_factory.mktemp("exported")
    (folder / "results.jsonl").write_text("\n".join(lines))
    done = evalake_here(
        "import", "results.jsonl", "--suite", "command_guard", "--max-missing", "0.5", "--json", folder=folder
    )
    return Imported(folder, json.loads(done.stdout))


def test_results_are_exported_as_tables_that_agree(run: Imported) -> None:
    for style in ("parquet", "csv"):
        done = evalake_here("export", "results", run.run, "--format", style, folder=run.folder)
        assert done.returncode == 0, done.stderr
    table = pl.read_parquet(run.folder / f"{run.run}.parquet")
    assert table["verdict"].to_list() == ["BLOCK", "ALLOW", "BLOCK", "BLOCK", "TIMEOUT_ERROR"]
    sheet = pl.read_csv(run.folder / f"{run.run}.csv")
    assert sheet["verdict"].to_list() == table["verdict"].to_list()
    assert sheet["command"][3] == "'=1+1"  # no formula of a spreadsheet


def test_results_are_exported_as_junit(run: Imported) -> None:
    done = evalake_here("export", "results", run.run, "--format", "junit", "--out", "j.xml", folder=run.folder)
    assert done.returncode == 0, done.stderr
    (suite,) = ElementTree.parse(run.folder / "j.xml").getroot()
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert counts["tests"] == "5"
    assert cases["mine s0 direct #0"] == []
    assert cases["mine s3 direct #0"] == ["failure"]
    assert len(cases["mine s4 direct #0"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("results",), "name the run"),
        (("results", "no-such-run"), "has no run no-such-run"),
        (("contracts", "some-run"), "contracts belong to no run"),
        (("pictures",), "pictures cannot be exported"),
    ],
)
def test_what_cannot_be_exported_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = evalake_here("export", *words, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
