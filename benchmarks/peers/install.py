"""The peers, each with its exact version, and where it is installed: in a folder of its own under build/peers."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import say
from tests.e2e.processes import ROOT

PACKAGES = {
    "inspect": ("inspect-ai==0.3.285", "openai==3.54.0"),
    "promptfoo": ("promptfoo@0.123.1", "node-linux-{machine}@24.21.0"),  # it refuses the Node of many distributions
}
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}  # as npm calls them
WAIT_SECONDS = 1200.0


class NotInstalledError(Exception):
    """A peer cannot be installed here; the message names the reason."""


def inspect_folder() -> Path:
    """Make the virtual environment that has Inspect, if need be. Raises NotInstalledError where it cannot be made."""
    folder, packages = _folder("inspect"), PACKAGES["inspect"]
    if not _is_whole(folder):
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *packages])
        _note_whole(folder)
    return folder


def promptfoo_folder() -> Path:
    """Make the folder with promptfoo's node_modules and Node, if need be. Raises NotInstalledError where it fails."""
    folder = _folder("promptfoo")
    packages = [package.format(machine=MACHINES.get(platform.machine(), "")) for package in PACKAGES["promptfoo"]]
    if not _is_whole(folder):
        folder.mkdir(parents=True)
        # Scripts of the packages would fetch browsers and models from elsewhere.
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
        _run(["npm", "install", "--prefix", str(folder), *options, *packages])
        _note_whole(folder)
    return folder


def _folder(peer: str) -> Path:
    return ROOT / "build" / "peers" / "-".join(PACKAGES[peer]).replace("{machine}", platform.machine())


def _is_whole(folder: Path) -> bool:
    """Tell whether a folder was installed to the end; one that was begun and cut off is removed."""
    if (folder / ".whole").exists():
        return True
    shutil.rmtree(folder, ignore_errors=True)
    say(f"installing {folder.name}")
    return False


def _note_whole(folder: Path) -> None:
    (folder / ".whole").touch()


def _run(words: Sequence[str]) -> None:
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(str(error)) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise NotInstalledError(f"{Path(words[0]).name} ended with {done.returncode}: {said[-1]}")
