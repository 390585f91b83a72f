"""What a run asks for: which run of the same order is continued, and of two with batch jobs one waits.

An order is a suite with the options that decide what models are asked. Two runs that ask the same at once would both
find no reply in the ledger, and both pay for it. Without batch jobs they claim each call (`tasks.call`).
"""

import fcntl
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import polars as pl

from evalake.contracts.tables import BATCH_JOBS, RUN_ITEMS, RUNS
from evalake.core.errors import UsageError
from evalake.core.files import open_state
from evalake.core.hashing import content_hash
from evalake.request import OPTIONS
from evalake.sdk import Dataset
from evalake.storage.batch_jobs import waiting_runs
from evalake.storage.lake import Lake
from evalake.tasks.runtime.progress import tell
from evalake.tasks.runtime.runs import versions_of, with_lost

_MAY_DIFFER = ("day", "tags", "note", "max_cost_usd", "max_calls", "max_missing", "accept_unreadable", "batch")

LOOK_SECONDS = 0.5


def order_of(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Select from the parameters of a run what it asks of models: the options that have to be equal to continue it."""
    kept = {name: given for name, given in parameters.items() if name in OPTIONS and name not in _MAY_DIFFER}
    return dict(json.loads(json.dumps(kept)))


@contextmanager
def in_turn(lake: Lake, suite: str, parameters: Mapping[str, Any], run_id: str) -> Iterator[None]:
    """Wait for this user's other run of the same order on this machine; another one waits during the block.

    It is for runs with batch jobs, whose requests no claim holds. A newer attempt of the same run does not wait: it
    overtakes (`runs.py`). A process that dies gives way at once.
    """
    name = f"order-{content_hash([suite, order_of(parameters)])[:32]}"
    with open_state(lake.address, name) as file:
        told = ""
        while (other := _take(file, run_id)) and other != run_id:
            if other != told:
                told = other
                tell(
                    f"run {other} of the same order is under way: this one begins after it, so that no call is paid "
                    f"twice; `evalake watch {other}` shows it"
                )
            time.sleep(LOOK_SECONDS)
        yield


def warn_of_other_machines(lake: Lake, suite: str, parameters: Mapping[str, Any], run_id: str) -> None:
    """Warn of another run of the same order in a lake that machines share: they cannot see each other's calls."""
    if "://" not in lake.address:
        return
    ours = with_lost(lake.frame(RUNS)).filter(pl.col("suite") == suite, pl.col("state") == "running")
    for other, known in ours.select("run_id", "parameters").collect().iter_rows():
        if other != run_id and order_of(json.loads(known)) == order_of(parameters):
            tell(
                f"run {other} of the same order is under way, or was killed in the last five minutes: where it runs on "
                f"another machine, what both ask at once is paid twice; `evalake watch {other}` shows it"
            )


def _take(file: IO[str], run_id: str) -> str | None:
    """Lock the file for a run, where it is free; returns the run that holds it, and None where this one does now."""
    file.seek(0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return file.read() or "that has just begun"
    file.truncate()
    file.write(run_id)
    file.flush()
    return None


def continued(lake: Lake, suite: str, parameters: Mapping[str, Any], datasets: Sequence[Dataset]) -> str | None:
    """Find the run of the same order to continue, which has asked nothing else; None without one.

    It awaits batch jobs, or is the newest of its order and was cut off after it had some: only under its own id does
    it know which requests failed in them.
    """
    if not lake.exists(BATCH_JOBS):
        return None
    waiting, asked = waiting_runs(lake), order_of(parameters)
    with_jobs = set(lake.frame(BATCH_JOBS).select("run_id").unique().collect()["run_id"])
    ours = lake.frame(RUNS).filter(suite=suite).sort("started_at", descending=True).collect()
    same = (run for run in ours.iter_rows(named=True) if order_of(json.loads(run["parameters"])) == asked)
    for number, run in enumerate(same):
        is_cut_off = number == 0 and run["run_id"] in with_jobs and run["state"] in ("running", "failed")
        if (run["run_id"] in waiting or is_cut_off) and _changed(lake, run, parameters, datasets) is None:
            return str(run["run_id"])
    return None


def require_unchanged(lake: Lake, run_id: str, parameters: Mapping[str, Any], datasets: Sequence[Dataset]) -> None:
    """Raise UsageError where a run of this id has asked something else: its manifest would mix both."""
    for run in lake.frame(RUNS).filter(run_id=run_id).collect().iter_rows(named=True):
        if (changed := _changed(lake, run, parameters, datasets)) is not None:
            raise UsageError(f"{changed} since the run {run_id} began: start a new run, which pays for what is new")


def _changed(
    lake: Lake, run: Mapping[str, Any], parameters: Mapping[str, Any], datasets: Sequence[Dataset]
) -> str | None:
    """Say what has changed since a run asked; None where it can go on. A source that has only grown lets it."""
    before = json.loads(run["parameters"])
    for name, what in (("prompts", "the texts of prompts"), ("request_parameters", "the parameters of requests")):
        if before.get(name, parameters[name]) != parameters[name]:
            return f"{what} have changed"
    if json.loads(run["dataset_versions"]) == versions_of(datasets):
        return None
    items = lake.frame(RUN_ITEMS).filter(run_id=run["run_id"]).select("sample_id", "sample_hash").unique().collect()
    gone = dict(items.select("sample_hash", "sample_id").iter_rows())
    samples = (sample for dataset in datasets for sample in dataset.samples)
    new = {sample.sample_id for sample in samples if gone.pop(sample.sample_hash, None) is None}
    if parameters["only_failed"]:  # which takes fewer samples as answers come
        gone = {sample_hash: sample_id for sample_hash, sample_id in gone.items() if sample_id in new}
    return f"samples like {min(gone.values())!r} have changed or gone" if gone else None
