"""The `runs` row: written when a run begins, and again when it ends."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from contracts.arrow import conform
from contracts.tables import RUNS
from storage.lake import Lake
from storage.landing import land
from suites.base import Dataset
from tasks.context import CODE_VERSION


@dataclass(frozen=True)
class Tally:
    """What a run has done so far. An unknown sum is None, and stays None."""

    calls_made: int = 0
    calls_from_ledger: int = 0
    calls_failed: int = 0
    rows_landed: int = 0
    rows_already_present: int = 0
    rows_quarantined: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cost_usd: float | None = 0.0
    cost_usd_avoided: float | None = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(**{name: _plus(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__})


@dataclass(frozen=True)
class Run:
    """A run as its row tells it."""

    run_id: str
    suite: str
    origin: str
    parameters: Mapping[str, Any]
    dataset_versions: Mapping[str, str]
    models: Sequence[str]
    judges: Sequence[str]
    samples: int
    items: int
    started_at: datetime
    state: str = "running"
    tally: Tally = field(default_factory=Tally)
    snapshot_id: str | None = None
    flow_run_id: str | None = None
    message: str | None = None
    ended_at: datetime | None = None

    def ended(self, state: str, **changes: Any) -> "Run":
        """The same run, ended now."""
        return replace(self, state=state, ended_at=datetime.now(UTC), **changes)


logger = logging.getLogger("evalake.runs")

_running: dict[str, tuple[Lake, Run]] = {}


def mark_interrupted() -> None:
    """Mark the runs that this process has begun and not ended."""
    for lake, run in list(_running.values()):
        save(lake, run.ended("failed", message="interrupted; a rerun asks only for what is missing"))


def save(lake: Lake, run: Run) -> None:
    """Land the run's row in place of an earlier one."""
    if run.state == "running":
        _running[run.run_id] = (lake, run)
    else:
        _running.pop(run.run_id, None)
    row = {
        **{name: getattr(run, name) for name in run.__dataclass_fields__ if name != "tally"},
        **{name: getattr(run.tally, name) for name in run.tally.__dataclass_fields__},
        "parameters": json.dumps(dict(run.parameters), sort_keys=True),
        "dataset_versions": json.dumps(dict(run.dataset_versions), sort_keys=True),
        "models": list(run.models),
        "judges": list(run.judges),
        "code_version": CODE_VERSION,
    }
    land(lake, RUNS, conform([row], RUNS))
    logger.info(
        "run %s of %s is %s: %d calls made, %d from the ledger, %d given up on; %s",
        run.run_id,
        run.suite,
        run.state,
        run.tally.calls_made,
        run.tally.calls_from_ledger,
        run.tally.calls_failed,
        run.message or "nothing to say",
    )


def versions_of(datasets: Sequence[Dataset]) -> dict[str, str]:
    """Dataset name to dataset version."""
    return {dataset.name: dataset.version for dataset in datasets}


def _plus(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right
