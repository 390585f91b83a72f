"""Faults of an object store: eight writers and upkeep at once, behind a proxy that loses, delays and breaks answers."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl

from chaos.outcome import Outcome
from chaos.proxy import faulty_store
from contracts.tables import CALLS
from core.errors import LakeError
from storage import ledger
from storage.integrity import find_damage
from storage.lake import Lake
from storage.landing import land
from storage.ledger import LedgerIndex
from storage.maintenance import maintain
from tests.e2e.buckets import bucket_of
from tests.storage.rows import TOYS, call, key_of, toy

WRITERS = 8
SHARED = 5  # keys that every writer lands, and calls that every writer is answered


def campaign(folder: Path, seed: int, seconds: float, share: float = 0.08) -> Iterator[Outcome]:
    """Write for so many seconds, then look without faults whether all of it is there once."""
    with bucket_of(folder) as bucket, faulty_store(bucket.options["AWS_ENDPOINT_URL"], seed, share) as store:
        faulty = Lake("s3://lake/chaos", {**bucket.options, "AWS_ENDPOINT_URL": store.url})
        sound = Lake("s3://lake/chaos", bucket.options)
        sound.ensure(TOYS)
        sound.ensure(CALLS)
        until = time.monotonic() + seconds
        answered: dict[ledger.Key, set[str]] = {}
        lock = threading.Lock()

        def write(writer: int) -> tuple[int, set[str]]:
            """Land and append until the time is over; returns failures, and what is promised to be there."""
            failures, landed, number = 0, set[str](), 0
            while time.monotonic() < until:
                number += 1
                keys = [f"{writer}-{number}", f"shared-{number % SHARED}"]
                rows = [
                    call(1000 * (writer + 1) + number, response=str(writer)),
                    call(number % SHARED, response=str(writer)),
                ]
                try:
                    land(faulty, TOYS, pl.DataFrame([toy(key) for key in keys]))
                    landed.update(keys)
                    ledger.append(faulty, rows)
                    # What is read now is the reply for ever.
                    replies = LedgerIndex.read(faulty).fetch([key_of(row) for row in rows])
                    with lock:
                        for key, row in replies.items():
                            answered.setdefault(key, set()).add(row["response"])
                        missing = len(rows) - len(replies)
                    if missing:
                        landed.add(f"a reply that was appended and not found: {rows}")
                except LakeError:
                    failures += 1
            return failures, landed

        def keep_up() -> int:
            times = 0
            while time.monotonic() < until:
                try:
                    maintain(faulty, [TOYS])
                    ledger.compact(faulty)
                    times += 1
                except LakeError:
                    continue
            return times

        with ThreadPoolExecutor(WRITERS + 1) as pool:
            upkeep = pool.submit(keep_up)
            done = list(pool.map(write, range(WRITERS)))
        yield from _outcomes(sound, done, answered, upkeep.result(), dict(store.injected))


def _outcomes(
    lake: Lake,
    done: list[tuple[int, set[str]]],
    answered: dict[ledger.Key, set[str]],
    upkeep: int,
    injected: dict[str, int],
) -> Iterator[Outcome]:
    keys = lake.frame(TOYS).collect()["key"]
    broken = []
    if missing := set().union(*(landed for _, landed in done)) - set(keys):
        broken.append(f"{len(missing)} rows are missing: {min(missing)}")
    if twice := keys.len() - keys.n_unique():
        broken.append(f"{twice} rows are there twice")
    if torn := [key for key, replies in answered.items() if len(replies) > 1]:
        broken.append(f"{len(torn)} keys of the ledger gave two different replies")
    index = LedgerIndex.read(lake).fetch(list(answered))
    if changed := [key for key, replies in answered.items() if {index[key]["response"]} != replies]:
        broken.append(f"{len(changed)} keys of the ledger give another reply now")
    for contract in (TOYS, CALLS):
        broken += [f"{contract.table}: {finding.problem}" for finding in find_damage(lake, contract)]
    failures = sum(failed for failed, _ in done)
    held = (
        f"{keys.len()} rows once each, {len(answered)} replies never changed, with {WRITERS} writers and "
        f"{upkeep} times upkeep; {failures} commits were refused with an error"
    )
    for fault, times in sorted(injected.items()):
        yield Outcome(f"object store: {fault}", times, held, "; ".join(broken))
