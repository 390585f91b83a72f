"""Ctrl-C: calls in flight end, what was answered is kept, the run is marked, and the process leaves. A second: at once.

Prefect would wait for batches to end. Nothing needs that: a run may be killed at any moment, and goes on from the
ledger. Calls in flight are paid for, so their replies are waited for.
"""

import os
import signal
import threading
import time
from types import FrameType

from cli.terminal import say_error

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
LOOK_SECONDS = 0.05

_ending, _left = threading.Event(), threading.Lock()


def end_on_ctrl_c() -> None:
    """Make Ctrl-C end the process as this module says, from now on."""
    signal.signal(signal.SIGINT, _wind_down)


def _wind_down(number: int, frame: FrameType | None) -> None:
    from tasks.runtime import resources, runs

    signal.signal(signal.SIGINT, _leave)
    _ending.set()
    runs.interrupted.set()
    resources.end_calls("interrupted")
    if count := resources.calls_in_flight():
        calls = "1 call in flight is" if count == 1 else f"{count} calls in flight are"
        say_error(f"{calls} finishing; press Ctrl-C again to stop at once")
        threading.Thread(target=_leave_when_done, name="interrupt", daemon=True).start()
    else:
        _leave()


def leave_if_interrupted() -> None:
    """End the process where Ctrl-C was pressed, and the flow has ended before all calls in flight were looked for."""
    if _ending.is_set():
        _leave()
        signal.pause()  # another thread is ending the process


def _leave_when_done() -> None:
    from tasks.runtime import resources

    while resources.calls_in_flight():
        time.sleep(LOOK_SECONDS)
    _leave()


def _leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    from tasks.runtime import progress, resources, runs

    if not _left.acquire(blocking=False):
        return
    progress.end_bars()
    resources.end_calls("interrupted")
    resources.end_writers()  # so that the run's row and the ledger say the same
    runs.mark_interrupted()
    say_error("interrupted; what was answered is in the ledger, a rerun asks only for the rest")
    os._exit(INTERRUPTED)
