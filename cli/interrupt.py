"""Ctrl-C: what was answered is kept, the run is marked, and the process leaves at once.

Prefect would wait for batches to end. Nothing needs that: a run may be killed at any moment, and goes on from the
ledger.
"""

import os
import signal
from types import FrameType

from cli.terminal import say_error

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def leave_at_once() -> None:
    """Make Ctrl-C end the process as this module says, from now on."""
    signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    from tasks.runtime import progress, resources, runs

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    progress.end_bars()
    resources.end_calls_and_writers("interrupted")  # so that the run's row and the ledger say the same
    runs.mark_interrupted()
    say_error("interrupted; what was answered is in the ledger, a rerun asks only for the rest")
    os._exit(INTERRUPTED)
