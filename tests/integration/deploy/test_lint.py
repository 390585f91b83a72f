"""What is deployed is well-formed, says the linter of each kind of file."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent


def lint(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_the_dockerfile_is_clean() -> None:
    done = lint("hadolint", "--failure-threshold", "style", "deploy/Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_compose_file_keeps_to_its_specification(tmp_path: Path) -> None:
    specification = ("check-jsonschema", "--builtin-schema", "vendor.compose-spec")
    done = lint(*specification, "deploy/compose.yaml", "deploy/compose.postgres.yaml")
    assert done.returncode == 0, done.stdout
    misspelt = tmp_path / "compose.yaml"
    misspelt.write_text((ROOT / "deploy" / "compose.yaml").read_text().replace("restart:", "restrat:"))
    assert lint(*specification, str(misspelt)).returncode != 0


@pytest.mark.parametrize("line", ["RUN cd /tmp", "FROM debian"])
def test_the_linter_finds_what_it_should(tmp_path: Path, line: str) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text(f"{(ROOT / 'deploy' / 'Dockerfile').read_text()}{line}\n")
    assert lint("hadolint", "--failure-threshold", "style", str(file)).returncode != 0
