"""What is delivered: locks, the wheel, the bill of materials, and what the machine must have."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

# The locks: whole, hashed, without addresses, of one mind; and what the runtime lock installs is small enough.

ROOT = Path(__file__).resolve().parents[3]
RUNTIME, DEV = "requirements.lock", "requirements-dev.lock"
LARGEST = 1.3e9  # bytes installed, without byte code
TEST_TOOLS = {"pytest", "hypothesis", "moto", "playwright", "ruff", "mypy", "schemathesis", "scikit-learn", "uv"}

Pins = dict[str, tuple[Requirement, list[str]]]


def pins(lock: str) -> Pins:
    """Each package of a lock: what is required, and the hashes that its files may have."""
    read: Pins = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / lock).read_text().strip()):
        requirement = Requirement(entry.split(" \\")[0])
        read[requirement.name] = requirement, re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
    return read


def wanted_here(lock: str) -> list[Requirement]:
    """What of a lock belongs on this machine."""
    return [one for one, _ in pins(lock).values() if one.marker is None or one.marker.evaluate()]


@pytest.mark.parametrize("lock", [RUNTIME, DEV])
def test_everything_is_pinned_with_hashes_and_without_addresses(lock: str) -> None:
    for requirement, hashes in pins(lock).values():
        assert str(requirement.specifier).startswith("=="), requirement
        assert hashes, requirement
    assert "://" not in (ROOT / lock).read_text()
    assert "--index" not in (ROOT / lock).read_text()


def test_what_runs_is_the_same_where_it_is_tested() -> None:
    runtime, dev = pins(RUNTIME), pins(DEV)
    for name, (requirement, hashes) in runtime.items():
        assert (dev[name][0].specifier, dev[name][1]) == (requirement.specifier, hashes)
    assert dev.keys() >= TEST_TOOLS
    assert not TEST_TOOLS & runtime.keys()


def test_the_runtime_lock_is_whole_and_builds_evalake() -> None:
    """It is installed without a resolver, so everything that its packages need has to be in it."""
    locked = pins(RUNTIME).keys()
    assert locked >= {"hatchling", "editables"}
    for requirement in wanted_here(RUNTIME):
        for line in distribution(requirement.name).requires or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert re.sub("[-_.]+", "-", needed.name).lower() in locked, f"{requirement.name} needs {needed}"


def test_the_runtime_lock_installs_few_bytes() -> None:
    taken = 0
    for requirement in wanted_here(RUNTIME):
        installed = distribution(requirement.name)
        assert installed.version in requirement.specifier, f"{requirement} is not what is installed: make test"
        files = (Path(str(installed.locate_file(file))) for file in installed.files or [])
        taken += sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())
    assert 0.5e9 < taken <= LARGEST


# The wheel holds what a user needs and nothing of the tests, and runs outside the checkout.


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-cache-dir"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(ROOT)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_it_holds_what_a_user_needs(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (entry_points,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
        assert "evalake = evalake.cli.main:main" in archive.read(entry_points).decode()
    assert {
        "evalake/suites/command_guard/starter/malicious.jsonl",
        "evalake/suites/session_review/templates/system.md",
        "evalake/suites/session_review/templates/outcome_first/system.md",
        "evalake/suites/session_review/wishes.jsonl",
        "evalake/suites/solidity_audit/canary.jsonl",
        "evalake/reports/templates/page.html.j2",
        "evalake/server/front/index.html",
        "evalake/py.typed",
        "evalake/flows/evaluate.py",
        "evalake/cli/project/prefect.yaml",
        "evalake/cli/project/gitignore",
        "evalake/cli/suites/exact/suite.toml",
        "evalake/docs/sql.md",
        "evalake/storage/lake.py",
    } <= names
    assert not {name.split("/")[0] for name in names} & {"tests", "benchmarks", "docs", "deploy"}


def test_it_runs_outside_the_checkout(wheel: Path, tmp_path: Path, prefect_api: str) -> None:
    installed, work = tmp_path / "installed", tmp_path / "work"
    work.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(installed)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "160", "PREFECT_API_URL": prefect_api}
    here = "from evalake.cli import main; print(main.__file__); main.main()"
    run = [sys.executable, "-c", here, "run", "command_guard", "--limit", "5"]
    done = subprocess.run(run, cwd=work, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))
    assert "15 rows landed" in done.stdout


# The lists of what an installation consists of: made by `make`, whole, and under licences that are permissive.

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


# What the system lacks: installed by apt where one is root, else told in the one line to type.

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


# What is deployed is well-formed, says the linter of each kind of file.

BIN = Path(sys.executable).parent


def lint(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, timeout=600)


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
