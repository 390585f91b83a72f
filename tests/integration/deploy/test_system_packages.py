"""What the system lacks: installed by apt where one is root, else told in the one line to type."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "deploy" / "system_packages.sh"
VENV_PACKAGE = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
SHELL = shutil.which("sh") or "/bin/sh"
PROGRAMS = ("git", "chromium-headless-shell", "initdb", "node", "npm", "systemd-analyze")  # what tests need


class Machine:
    """A machine that has nothing but the programs that a test gives it."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.asked = folder / "asked"
        self.has("id", "echo 1000")

    def has_all_but(self, *missing: str) -> None:
        """Put everything on the path that tests need, but for what is missing."""
        for name in set(PROGRAMS) - set(missing):
            self.has(name)

    def has(self, name: str, *lines: str) -> None:
        """Put a program on the path, as a script."""
        program = self.programs / name
        program.write_text("\n".join((f"#!{SHELL}", *lines, "")))
        program.chmod(0o755)

    def is_roots(self, *packages: str) -> None:
        """Make the user root, with an apt-get that writes down what it is asked for and then brings the programs."""
        self.has("id", "echo 0")
        copies = [f"{shutil.which('cp')} {self.programs}/id {self.programs}/{name}" for name in packages]
        self.has("apt-get", f'echo "$@" >> {self.asked}', *copies)

    def run(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run the script with nothing else on the path."""
        path = {"PATH": str(self.programs), "HOME": os.environ.get("HOME", "/")}
        command = [SHELL, str(SCRIPT), *arguments]
        return subprocess.run(command, env={**path, **environment}, capture_output=True, text=True)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_where_nothing_is_missing_nothing_is_said(machine: Machine) -> None:
    machine.has_all_but()
    machine.has("python3", "echo python3.11")
    for purpose in ("setup", "test"):
        done = machine.run(purpose)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_who_is_not_root_is_told_the_line_to_type(machine: Machine) -> None:
    machine.has_all_but("chromium-headless-shell", "initdb", "npm")
    done = machine.run("test")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].strip() == "sudo apt-get install --yes chromium-headless-shell postgresql npm"


def test_a_python_without_venv_is_found_before_an_environment_is_begun(machine: Machine) -> None:
    machine.has("python3", 'case "$2" in *ensurepip*) exit 1 ;; esac', f'exec {sys.executable} "$@"')
    done = machine.run("setup", "python3")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].strip() == f"sudo apt-get install --yes {VENV_PACKAGE}"


def test_as_root_only_what_is_missing_is_installed(machine: Machine) -> None:
    machine.has_all_but("initdb")
    machine.is_roots("initdb")
    done = machine.run("test")
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.asked.read_text().splitlines() == ["update -qq", "install --yes -qq postgresql"]


def test_where_apt_has_not_helped_it_says_so(machine: Machine) -> None:
    machine.has_all_but("initdb", "chromium-headless-shell")
    machine.is_roots("initdb")
    done = machine.run("test")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].strip() == "sudo apt-get install --yes chromium-headless-shell"


def test_a_browser_with_windows_is_enough(machine: Machine) -> None:
    machine.has_all_but("chromium-headless-shell")
    machine.has("chromium")
    assert machine.run("test").returncode == 0


def test_another_browser_may_be_named(machine: Machine) -> None:
    machine.has_all_but("chromium-headless-shell")
    machine.has("browser")
    assert machine.run("test").returncode == 1
    assert machine.run("test", EVALAKE_CHROMIUM=str(machine.programs / "browser")).returncode == 0
