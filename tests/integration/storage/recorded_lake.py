"""A lake with real rows of two suites: two models that differ, two judges that differ, and a line that was refused."""

import json
from pathlib import Path
from typing import Any

from evalake.admin.import_results import import_recorded
from evalake.storage.lake import Lake
from evalake.suites.registry import suite
from evalake.tasks.runtime.runs import labels_of
from tests.integration.cli.command import recorded
from tests.unit.suites.solidity_audit.support import SAFE, finding, judgement, line, target

MODELS = ("openai/gpt-4o-mini", "openai/gpt-4o")
SAMPLES = 40
JUDGES = ("alice", "bob")
AUDITS = 12


def recorded_lake(folder: Path) -> Lake:
    """Import generated results into `folder`/lake.

    command_guard: the first model blocks every second of 20 malicious commands, the other all of them; both let 20
    harmless ones through; first half of the first model's lines are imported once more, as an earlier run. One line
    is no JSON. solidity_audit: one audit of 12 contracts, each fourth safe; alice finds every target, bob misses it
    in each third contract. The run of half the lines is tagged `pilot`.
    """
    lake = Lake(str(folder / "lake"))
    guard = [recorded(n, model, _action(n, model)) for model in MODELS for n in range(SAMPLES)]
    _import(lake, folder / "half.jsonl", "command_guard", guard[: SAMPLES // 2], "pilot")
    _import(lake, folder / "guard.jsonl", "command_guard", [*guard, "{not json"])
    audits = [json.dumps(_judged(n, judge)) for n in range(AUDITS) for judge in JUDGES]
    _import(lake, folder / "audits.jsonl", "solidity_audit", audits)
    return lake


def lake_of_one_run(folder: Path, samples: int) -> Path:
    """Import that many results of command_guard, by one model, into `folder`/lake; returns its folder, to copy."""
    _import(
        Lake(str(folder / "lake")), folder / "results.jsonl", "command_guard", [recorded(n) for n in range(samples)]
    )
    return folder / "lake"


def lake_of_nights(folder: Path) -> Lake:
    """40 commands, asked again in a second night, which judges five wrongly; the third has 20."""
    lake = Lake(str(folder / "lake"))
    for night, (samples, wrong) in enumerate(((40, 0), (40, 5), (20, 0))):
        actions = ["ALLOW" if n % 2 == 1 and n >= wrong * 2 else "BLOCK" for n in range(samples)]
        lines = [recorded(n, MODELS[0], action, replicate=night) for n, action in enumerate(actions)]
        (nightly := folder / str(night)).mkdir()
        _import(lake, nightly / "commands.jsonl", "command_guard", lines)
    return lake


def _import(lake: Lake, file: Path, name: str, lines: list[str], *tags: str) -> None:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    import_recorded(lake, suite(name), [file], labels=labels_of(tags, None))


def _action(sample: int, model: str) -> str:
    if sample % 2 == 1:
        return "ALLOW"
    return "BLOCK" if model == MODELS[1] or sample % 4 == 0 else "ALLOW"


def _judged(sample: int, judge: str) -> dict[str, Any]:
    if sample % 4 == 3:
        return line(sample, SAFE, judgement(said=False), judge=judge)
    if judge == "bob" and sample % 3 == 0:
        return line(sample, judged=judgement([finding(1, "HALLUCINATED")], target(found=False)), judge=judge)
    return line(sample, judged=judgement([finding()], target(share=0.8)), judge=judge)
