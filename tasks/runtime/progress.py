"""Progress of this process's runs: a bar on a terminal, plain lines elsewhere, and an artifact in Prefect.

The artifact of a scoring is also its heartbeat.
"""

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast
from uuid import UUID

from evalake.tasks.runtime.logs import as_json

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def background_thread(work: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `work` on a thread during the block. It gets an event that is set at the end, and is then waited for."""
    over = threading.Event()
    thread = threading.Thread(target=copy_context().run, args=(work, over), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


logger = logging.getLogger("evalake.runs")

LINE_EVERY_SECONDS = 5.0
BEAT_SECONDS = 2.0
LOOK_SECONDS = 0.2

_running: dict[str, "_Progress"] = {}
_bars: "list[Progress]" = []  # on the terminal


@dataclass
class _Progress:
    total: int
    parts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def done(self) -> int:
        with self.lock:
            return min(self.parts.total(), self.total)


def end_bars() -> None:
    """End the bars on the terminal and show its cursor again, before the process exits."""
    for bar in list(_bars):
        bar.stop()


def key_of(run_id: str) -> str:
    """Return the key of a run's progress artifact."""
    return f"progress-{run_id}"


def advance(run_id: str, part: str = "", by: int = 1) -> None:
    """Count ended items of a part of a run, like a batch, in the process that shows the run."""
    if (progress := _running.get(run_id)) is not None:
        with progress.lock:
            progress.parts[part] += by


def ended(run_id: str, part: str, items: int) -> None:
    """Count all items of a part of a run as ended, which another process may have done."""
    if (progress := _running.get(run_id)) is not None:
        with progress.lock:
            progress.parts[part] = items


def done_of(run_id: str) -> int:
    """Return the number of a run's ended items; 0 in a process that does not show the run."""
    progress = _running.get(run_id)
    return progress.done if progress is not None else 0


@contextmanager
def shown(run_id: str, title: str, total: int) -> Iterator[None]:
    """Show a run's progress towards `total` items during the block."""
    progress = _running[run_id] = _Progress(total)
    artifact = heartbeat_artifact(
        key_of(run_id), title, lambda: 100.0 * progress.done / max(total, 1), BEAT_SECONDS, BEAT_SECONDS
    )
    try:
        with artifact, background_thread(partial(_show, progress, title), "progress"):
            yield
    finally:
        del _running[run_id]


@contextmanager
def heartbeat_artifact(
    key: str, title: str, progress: Callable[[], float], beat_seconds: float, look_seconds: float = LOOK_SECONDS
) -> Iterator[None]:
    """Show `progress` (0 to 100) in Prefect: changes after `look_seconds` and at the end, and a beat in between.

    The artifact's time of update moves at least every `beat_seconds` while this process lives.
    """
    import httpx
    from prefect.artifacts import create_progress_artifact, update_progress_artifact

    shown = progress()
    artifact = cast(UUID, create_progress_artifact(shown, key=key, description=title))

    def beat(over: threading.Event) -> None:
        last, waited, is_over = shown, 0.0, False
        while not is_over:
            is_over = over.wait(look_seconds)
            waited += look_seconds
            now = progress()
            if now == last and (is_over or waited < beat_seconds):
                continue
            with suppress(httpx.HTTPError):  # an unreachable server gets the next beat
                update_progress_artifact(artifact, now)
                last, waited = now, 0.0

    with background_thread(beat, "heartbeat"):
        yield


def tell(sentence: str) -> None:
    """Log a warning about the course of a run, and print it on standard error."""
    logger.warning(sentence)
    if not as_json():
        sys.stderr.write(f"{sentence}\n")


def _show(progress: _Progress, title: str, over: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    line_due = time.monotonic()
    in_words = as_json() or not console.is_terminal
    with Progress(*columns, console=console, disable=in_words) as bar:
        _bars.append(bar)
        shown_task = bar.add_task(title, total=progress.total)
        last = False
        while not last:
            last = over.wait(LOOK_SECONDS)
            bar.update(shown_task, completed=progress.done)
            now = time.monotonic()
            if in_words and (last or now >= line_due):
                if as_json():
                    logger.info("%s: %d of %d", title, progress.done, progress.total)
                else:
                    console.print(f"{title}: {progress.done} of {progress.total}", highlight=False)
                line_due = now + LINE_EVERY_SECONDS
        _bars.remove(bar)
