"""The lists of what an installation consists of: made by `make`, whole, and under licences that are permissive."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COPYLEFT = re.compile(r"\b(A?GPL|GNU (Affero )?General Public|SSPL|BUSL|Commons Clause)", re.IGNORECASE)


def make(target: str, folder: Path) -> None:
    """`make TARGET` with the Python of this test, which is set up already, into a folder."""
    stamp = "--old-file=.venv/.set-up-dev"
    command = ["make", stamp, f"BIN={Path(sys.executable).parent}", f"BUILD={folder}", target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def locked() -> set[str]:
    """The names of all packages of the runtime lock that are installed here."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return {match[1] for line in lines if (match := re.match(r"([a-z0-9-]+)==[^;]+$", line))}


def test_the_bill_of_materials_names_every_part_with_its_hashes(tmp_path: Path) -> None:
    make("sbom", tmp_path)
    bill = json.loads((tmp_path / "sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "evalake")
    assert {part["name"] for part in bill["components"]} >= locked()
    assert all(part["externalReferences"][0]["hashes"] for part in bill["components"])


def test_every_licence_is_known_and_permissive(tmp_path: Path) -> None:
    make("licences", tmp_path)
    with (tmp_path / "licences.csv").open(newline="") as file:
        licences = {re.sub("[-_.]+", "-", row["Name"]).lower(): row["License"] for row in csv.DictReader(file)}
    assert licences.keys() >= locked()
    strict = {name for name, licence in licences.items() if COPYLEFT.search(licence)}
    assert strict == {"text-unidecode"}
    assert "Artistic License" in licences["text-unidecode"]
    of_files = {name for name, licence in licences.items() if re.search(r"\bMPL|Mozilla|\bEPL|\bCDDL", licence)}
    chosen = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    assert "offered under the Artistic License or the GPL. evalake uses it under the **Artistic License**" in chosen
    (written,) = re.findall(r"\* ([\w, ]+) are under the MPL-2\.0", chosen)
    assert of_files == set(re.split(", | and ", written))
    assert "UNKNOWN" not in licences.values()
