"""A small lake of recorded results: six commands that a guard judged, and two audits that a judge read."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from evalake.admin.import_results import import_recorded
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from tests.integration.cli.command import recorded
from tests.unit.suites.solidity_audit.support import finding, judgement, line, target


@dataclass(frozen=True)
class Imported:
    """A lake, and its runs by suite."""

    lake: Lake
    guard: str
    audits: str

    @classmethod
    def into(cls, folder: Path) -> "Imported":
        """Import into `folder`/lake."""
        lake = Lake(str(folder / "lake"))
        commands, audits = folder / "commands.jsonl", folder / "audits.jsonl"
        commands.write_text("\n".join(recorded(n) for n in range(6)))
        judged = [line(n, judged=judgement([finding()], target(share=0.8)), judge="alice") for n in range(2)]
        audits.write_text("\n".join(map(json.dumps, judged)))
        runs = [
            import_recorded(lake, suite(name), [file])
            for name, file in (("command_guard", commands), ("solidity_audit", audits))
        ]
        return cls(lake, *runs)

    def copied(self, folder: Path) -> "Imported":
        """The same in a lake of its own, to be changed."""
        shutil.copytree(self.lake.uri, folder / "lake")
        return Imported(Lake(str(folder / "lake")), self.guard, self.audits)
