"""One plan, in a process of its own and with nothing of the ledger in memory: what it reads of the disk."""

import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.material import request
from evalake.core.configuration import PROVIDER
from evalake.storage.lake import Lake
from evalake.storage.ledger import Key, LedgerIndex


def main(uri: str, first: int, step: int, count: int) -> None:
    """Plan `count` requests, `step` numbers apart, and print what was known, what was read, and what it took."""
    keys = [Key(request(number).prompt_hash, 0, PROVIDER) for number in range(first, first + step * count, step)]
    forget_pages([Path(uri)])
    before, started, used = read_from_disk(), time.perf_counter(), time.process_time()
    known = len(LedgerIndex.read(Lake(uri)).fetch(keys))
    print(
        json.dumps(
            {
                "known": known,
                "bytes": read_from_disk() - before,
                "seconds": time.perf_counter() - started,
                "cpu": time.process_time() - used,
                "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


def forget_pages(folders: Sequence[Path]) -> None:
    """Drop the pages of the files in these folders from the system's page cache."""
    os.sync()  # pages that are not written yet stay in memory
    for file in (file for folder in folders for file in folder.rglob("*") if file.is_file()):
        opened = os.open(file, os.O_RDONLY)
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(opened)


def read_from_disk() -> int:
    """Read how many bytes the system has read from a disk for this process, those of mapped files included."""
    told = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(told["read_bytes"])


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
