"""A whole command as somebody types it, from its start to its exit, measured by a process that holds little memory.

The peak memory that Linux reports for a child process begins with the memory that its parent held.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ended:
    """What a command and the processes it waited for took: seconds, processor seconds, peak bytes of the largest."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    code: int = 0


def main(log: Path, words: list[str]) -> None:
    """Run the command to its end, write its output into a file, and print what it took, whatever its exit code."""
    with log.open("wb") as file:
        started = time.perf_counter()
        process = subprocess.Popen(words, cwd=log.parent, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    ended = Ended(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, process.returncode)
    print(json.dumps(asdict(ended)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
