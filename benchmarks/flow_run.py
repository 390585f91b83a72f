"""One run of the evaluate flow in a process of its own: how long its body took, and how much memory it held at most.

Before it, the process makes a small run in another lake, which pays for imports and connections.
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.place import child

CONCURRENCY = 64
BATCH_SIZE = 250
WARM_UP_SAMPLES = 64


@dataclass(frozen=True)
class Ran:
    """What a run took: seconds from the start of the flow's body to the end that its row names, and bytes."""

    seconds: float
    before_bytes: int  # that the process held before, with its imports
    peak_bytes: int


def run(
    place: Path,
    dataset: Path,
    model: str,
    environment: Mapping[str, str],
    api_base: str | None = None,
    concurrency: int = CONCURRENCY,
    batch_size: int = BATCH_SIZE,
    lake: str = "",
) -> Ran:
    """Run the dataset on a lake, usually `place`/lake; `environment` names the Prefect server."""
    entry = "" if api_base is None else f'[models."{model}"]\napi_base = "{api_base}"\n'
    limits = f"[providers.{model.partition('/')[0]}]\nconcurrency = {concurrency}\n"
    place.mkdir(exist_ok=True)
    (place / "evalake.toml").write_text(f"batch_size = {batch_size}\n{entry}{limits}")
    return Ran(**child("flow_run", [str(place), str(dataset), model, lake or str(place / "lake")], environment))


def main(place: Path, dataset: Path, model: str, lake: str) -> None:
    """Make the small run, then the one that is measured, and print what it took."""
    from evalake.cli.terminal import prepare

    prepare()
    _seconds(place, str(place / "warm-up"), dataset, model, WARM_UP_SAMPLES)
    before = _bytes("VmRSS")
    seconds = _seconds(place, lake, dataset, model)
    print(json.dumps(asdict(Ran(seconds, before, _bytes("VmHWM")))))


def _seconds(place: Path, lake: str, dataset: Path, model: str, limit: int | None = None) -> float:
    from prefect.client.orchestration import get_client

    from evalake.contracts.tables import RUNS
    from evalake.flows.evaluate import evaluate
    from evalake.storage.lake import Lake
    from evalake.tasks.runtime.form import run_id_of

    state = evaluate(
        suite="command_guard",
        models=[model],
        datasets=[str(dataset)],
        limit=limit,
        lake=lake,
        configuration_file=str(place / "evalake.toml"),
        return_state=True,
    )
    state.result()
    flow_run_id = state.state_details.flow_run_id
    assert flow_run_id is not None
    with get_client(sync_client=True) as client:
        started = client.read_flow_run(flow_run_id).start_time
    ended = Lake(lake).frame(RUNS).collect().filter(run_id=run_id_of(str(flow_run_id)))["ended_at"].item()
    return float((ended - started).total_seconds())


def _bytes(name: str) -> int:
    """Read the memory of this process alone from Linux; getrusage would begin with what its parent held."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
