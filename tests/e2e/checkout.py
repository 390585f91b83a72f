"""A checkout of the project with a deployment file of its own, for tests in which time is short."""

from collections.abc import Mapping
from pathlib import Path
from shutil import copy, copytree

from tests.e2e.processes import ROOT


def checkout(folder: Path, replacements: Mapping[str, str]) -> Path:
    """Everything of the project by reference, and prefect.yaml, deploy/ and automations as copies with replaced text.

    Every replaced text stands exactly once in one of the copied files.
    """
    folder.mkdir()
    for part in ROOT.iterdir():
        if part.name not in {"prefect.yaml", "deploy"} and not part.name.startswith("."):
            (folder / part.name).symlink_to(part)
    copytree(ROOT / "deploy", folder / "deploy")
    copy(ROOT / "evalake" / "server" / "local" / "automations.yaml", folder)
    (folder / "prefect.yaml").write_bytes((ROOT / "prefect.yaml").read_bytes())
    declared = [*folder.glob("*.yaml"), *(folder / "deploy").glob("*.yaml")]
    for old, new in replacements.items():
        (file,) = [file for file in declared if file.read_text().count(old) == 1]
        file.write_text(file.read_text().replace(old, new))
    return folder
