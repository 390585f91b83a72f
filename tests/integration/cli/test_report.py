"""`evalake report`: a page for people, data for machines, and a verdict in words."""

import json

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_a_report_is_a_page_and_data(imported: Imported) -> None:
    done = evalake_here("report", imported.run, "--out", "shown", folder=imported.folder)
    assert done.returncode == 0, done.stderr
    assert "UNDECIDED" in done.stdout  # 0.75 [0.62-0.8504], as the interval still holds the target of 0.85
    place = imported.folder / "shown" / imported.run
    assert "openai/gpt-4o-mini" in (place / "report.html").read_text()
    assert json.loads((place / "report.json").read_text())
