"""Make the golden lake of this version: `python -m tests.golden.lakes.make [FOLDER]` writes FOLDER/VERSION.tar.xz.

Done once for each release, by the release's own code, and never again for that version: later versions are tested
against what this one really wrote. Whatever can be made by a command is, so that the script outlives what is inside.
"""

import csv
import json
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from datetime import date, timedelta
from importlib.metadata import version
from pathlib import Path

import httpx

from tests.golden.lakes import material
from tests.servers.judges import NoisyJudge
from tests.servers.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[3]
LARGEST = 300_000  # bytes of an archive
JUDGE, BROKEN = "hosted_vllm/judge", "hosted_vllm/broken"
FIRST_DAY = date(2026, 11, 20)
CANARY = """
from datetime import date
from evalake.flows.judges import canary
from evalake.tasks import canary as steps
all_items = steps.canary_items
steps.canary_items = lambda *of: all_items(*of)[:2]  # they are long
canary(suites=["session_review"], judges=["{judge}"], day=date.fromisoformat("{day}"), lake="lake",
       configuration_file="evalake.toml")
"""


class Making:
    """A folder in which a lake is made, with the environment of the commands."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.folder, self.server = folder, server
        models = "".join(f'[models."{model}"]\napi_base = "{server.api_base}"\n' for model in (JUDGE, BROKEN))
        limits = "[providers.hosted_vllm]\nattempts = 1\ntimeout_seconds = 30\n"
        (folder / "evalake.toml").write_text(f"batch_size = 50\n{limits}{models}")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PREFECT_HOME": str(folder / "prefect"),
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        }

    def python(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run Python in the folder and return what it printed; `codes` are the exit codes that are as planned."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in codes:
            raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-3000:]}")
        return done.stdout

    def evalake(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run the command."""
        return self.python("-m", "evalake.cli", *arguments, codes=codes)

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run an evaluation and return its id."""
        return str(json.loads(self.evalake("run", *arguments, "--json", codes=codes))["run_id"])

    def label(self, run: str) -> None:
        """Fill in a sheet of the run's audits as two people would."""
        self.evalake("label", "export", run, "--size", "4", "--out", "sheet.csv")
        rows = list(csv.DictReader((self.folder / "sheet.csv").read_text().splitlines()))
        for number, row in enumerate(rows):
            if row["finding_id"]:
                row.update(classification="TARGET_MATCH" if number % 4 else "HALLUCINATED", note="looked at twice")
            else:
                row.update(verdict="vulnerable", target_found="yes" if number % 4 else "no", rcir="0.5", fsv="0.25")
        with (self.folder / "sheet.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        self.evalake("label", "import", "sheet.csv", "--suite", "solidity_audit", "--labeller", "carol")
        self.evalake("label", "import", "sheet.csv", "--suite", "solidity_audit", "--labeller", "dave")

    def rate(self, ratings: Mapping[str, float]) -> None:
        """Rate sessions through the service, as a person at the dashboard would."""
        command = [
            sys.executable,
            "-m",
            "evalake.cli",
            "serve",
            "--port",
            "0",
            "--no-token",
            "--sessions",
            "sessions.jsonl",
        ]
        with subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True
        ) as service:
            assert service.stderr is not None
            line = next(line for line in service.stderr if "evalake serves" in line)
            address = line.split("evalake serves ")[1].split()[0]
            for session, score in ratings.items():
                url = f"{address.rstrip('/')}/api/v1/scoring/sessions/{session}/human-rating"
                body = {"score": score, "note": f"rated {score:g}"}
                httpx.put(url, json=body, timeout=600).raise_for_status()
            service.terminate()
            service.stderr.read()

    def canary(self, days_later: int) -> None:
        """Ask the judge about its frozen items as of one day."""
        day = (FIRST_DAY + timedelta(days_later)).isoformat()
        self.python("-c", CANARY.format(judge=JUDGE, day=day))


def make(folder: Path) -> None:
    """Fill `folder`/lake with rows of as many tables as there are, over several versions of each."""
    with ModelServer() as server:
        mind = NoisyJudge()
        server.rule(reply=mind)
        server.rule(model="broken", faults=({"kind": "server_error", "times": 0},))
        making = Making(folder, server)
        material.write(folder)
        commands = ("command_guard", "--dataset", "commands.jsonl", "--models")
        making.run(*commands, "baseline/shell-patterns", "--limit", "4")
        making.run(*commands, "baseline/shell-patterns,baseline/always-block")
        making.run(*commands, BROKEN, "--limit", "2", codes=(0, 1))
        making.run("session_review", "--dataset", "sessions.jsonl")
        making.canary(0)
        mind.shift = 25
        making.canary(1)
        making.evalake("import", "verdicts.jsonl", "--suite", "command_guard", "--json", codes=(0, 1))
        making.evalake("maintain")
        audits = making.run("solidity_audit", "--dataset", "contracts.jsonl")
        making.label(audits)
        making.run("solidity_audit", "--dataset", "contracts.jsonl")  # measured with the labels
        making.rate({"disk-full": 70.0, "slow-query": 35.0})
        making.run("session_review", "--dataset", "sessions.jsonl")


def pack(lake: Path, archive: Path) -> None:
    """Pack a lake, smallest, so that nothing of the machine is in the archive but the rows."""
    smallest = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "pb": 0}]
    with lzma.open(archive, "wb", filters=smallest) as stream, tarfile.open(fileobj=stream, mode="w") as file:
        for path in sorted(path for path in lake.rglob("*") if path.is_file()):
            member = tarfile.TarInfo(str(path.relative_to(lake.parent)))
            member.size, member.mtime = path.stat().st_size, int(path.stat().st_mtime)
            with path.open("rb") as content:
                file.addfile(member, content)
    if archive.stat().st_size > LARGEST:
        raise SystemExit(f"{archive} has {archive.stat().st_size} bytes: a golden lake has at most {LARGEST}")


def main() -> None:
    """Make the lake of the version that is installed."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        pack(Path(folder, "lake"), place / f"{version('evalake')}.tar.xz")


if __name__ == "__main__":
    main()
