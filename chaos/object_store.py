"""Faults of an object store: eight writers and maintenance, behind a proxy that loses, delays and breaks answers."""

import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import polars as pl

from chaos.outcome import Outcome
from chaos.proxy import faulty_store
from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS
from evalake.core.errors import LakeError
from evalake.storage import ledger
from evalake.storage.integrity import inspect
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import LedgerIndex
from evalake.storage.maintenance import maintain
from tests.e2e.buckets import bucket_of
from tests.integration.storage.rows import TOYS, call, key_of, toy

WRITERS = 8
TABLES = (TOYS, CALLS)
SHARED = 5  # keys that every writer lands, and calls that every writer is answered


def campaign(folder: Path, seed: int, seconds: float, share: float = 0.05) -> Iterator[Outcome]:
    """Write for `seconds`, then check without faults that every row is there once."""
    with bucket_of(folder) as bucket:
        sound = Lake("s3://lake/chaos", bucket.options)
        for contract in TABLES:
            sound.ensure(contract)
        with faulty_store(bucket.options["AWS_ENDPOINT_URL"], seed, share) as store:
            faulty = Lake("s3://lake/chaos", {**bucket.options, "AWS_ENDPOINT_URL": store.url})
            done = _write(faulty, time.monotonic() + seconds)
        yield from _outcomes(sound, done, store.injected)


@dataclass
class Done:
    """What writers and maintenance did, and what they were told."""

    refused: int = 0  # commits
    maintained: int = 0
    landed: set[str] = field(default_factory=set)  # keys of rows that were acknowledged
    answered: dict[ledger.Key, set[str]] = field(default_factory=dict)  # replies that were read of each key
    missing: list[str] = field(default_factory=list)  # replies that were acknowledged, and not found


def _write(lake: Lake, until: float) -> Done:
    """Run eight writers that land and append, and maintenance beside them: two rounds, or until the time is over."""
    done, lock = Done(), threading.Lock()

    def write(writer: int) -> None:
        for number in count(1):
            if number > 2 and time.monotonic() > until:
                return
            keys = [f"{writer}-{number}", f"shared-{number % SHARED}"]
            rows = [
                call(1000 * (writer + 1) + number, response=str(writer)),
                call(number % SHARED, response=str(writer)),
            ]
            try:
                land(lake, TOYS, pl.DataFrame([toy(key) for key in keys]))
                done.landed.update(keys)
                ledger.append(lake, rows)
                # The reply that is read now must never change.
                replies = LedgerIndex.read(lake).fetch([key_of(row) for row in rows])
            except LakeError:
                with lock:
                    done.refused += 1
                continue
            with lock:
                for key, row in replies.items():
                    done.answered.setdefault(key, set()).add(row["response"])
                done.missing += [str(key_of(row)) for row in rows if key_of(row) not in replies]

    def keep_up(contract: Contract) -> None:
        while time.monotonic() < until:
            with suppress(LakeError):
                maintain(lake, [contract])
                with lock:
                    done.maintained += 1

    with ThreadPoolExecutor(WRITERS + len(TABLES)) as pool:
        maintaining = [pool.submit(keep_up, contract) for contract in TABLES]
        for work in [*maintaining, *(pool.submit(write, writer) for writer in range(WRITERS))]:
            work.result()
    return done


def _outcomes(lake: Lake, done: Done, injected: Mapping[str, int]) -> Iterator[Outcome]:
    keys = lake.frame(TOYS).collect()["key"]
    broken = [f"a reply that was acknowledged is not found: {key}" for key in done.missing]
    if missing := done.landed - set(keys):
        broken.append(f"{len(missing)} rows are missing: {min(missing)}")
    if twice := keys.len() - keys.n_unique():
        broken.append(f"{twice} rows are there twice")
    if torn := [key for key, replies in done.answered.items() if len(replies) > 1]:
        broken.append(f"{len(torn)} keys of the ledger gave two different replies")
    index = LedgerIndex.read(lake).fetch(list(done.answered))
    now = {key: {index[key]["response"]} if key in index else set() for key in done.answered}
    if changed := [key for key, replies in done.answered.items() if now[key] != replies]:
        broken.append(f"{len(changed)} keys of the ledger give another reply now")
    for contract in TABLES:
        broken += [f"{contract.table}: {finding.problem}" for finding in inspect(lake, contract).damage]
    held = (
        f"{keys.len()} rows once each, {len(done.answered)} replies never changed, with {WRITERS} writers and "
        f"{done.maintained} passes of maintenance; {done.refused} commits were refused with an error"
    )
    for fault, times in sorted(injected.items()):
        yield Outcome(f"object store: {fault}", times, held, "; ".join(broken))
