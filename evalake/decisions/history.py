"""The history of gates: keep each decision in `gate_decisions`, so that its page can show how it moved."""

from datetime import UTC, datetime

from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import GATE_DECISIONS
from evalake.core.hashing import content_hash
from evalake.decisions.sides import find_side
from evalake.reports.gate import Gate
from evalake.storage.lake import Lake
from evalake.storage.landing import Landed, land

NUMBERS = ("value", "difference", "ci_low", "ci_high", "units", "reason", "limit_low", "limit_high", "missing")


def keep(lake: Lake, held: Gate) -> Landed:
    """Land a gate's decisions; the same decision about the same snapshots lands once, with its first time.

    Raises LakeError where the lake cannot be written to.
    """
    side = find_side(lake, held.run, None)
    baseline = None if held.baseline is None else find_side(lake, held.baseline, None).snapshot["snapshot_id"]
    rows = []
    for check in held.checks:
        row = {
            "run_id": side.run["run_id"],
            "snapshot_id": side.snapshot["snapshot_id"],
            "suite": side.run["suite"],
            "baseline": held.baseline,
            "rule": check.rule,
            "model": check.model,
            "judge": check.judge,
            "verdict": str(check.decision.verdict),
            **{name: getattr(check, name) for name in NUMBERS},
            "reliable": check.is_reliable,
        }
        rows.append({**row, "decision_id": content_hash([*row.values(), baseline]), "decided_at": datetime.now(UTC)})
    return land(lake, GATE_DECISIONS, conform(rows, GATE_DECISIONS))
