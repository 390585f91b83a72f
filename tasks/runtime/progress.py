"""Progress of the runs of this process: a bar on a terminal, plain lines elsewhere, and an artifact in Prefect.

The artifact of a scoring is its sign of life, too.
"""

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast
from uuid import UUID

from evalake.tasks.runtime.heartbeat import beside
from evalake.tasks.runtime.logs import as_json

if TYPE_CHECKING:
    from rich.progress import Progress

logger = logging.getLogger("evalake.runs")

LINE_EVERY_SECONDS = 5.0
ARTIFACT_EVERY_SECONDS = 2.0
BEAT_SECONDS = 2.0
LOOK_SECONDS = 0.2

_running: dict[str, "_Progress"] = {}
_bars: "list[Progress]" = []  # that are on the terminal


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
    """End the bars that are on the terminal with their line, and show its cursor again; for a process that leaves."""
    for bar in list(_bars):
        bar.stop()


def key_of(run_id: str) -> str:
    """Name the key of the artifact that shows a run's progress."""
    return f"progress-{run_id}"


def advance(run_id: str, part: str = "", by: int = 1) -> None:
    """Count ended items of a part of a run, such as a batch; without effect in a process that does not show the run."""
    if (progress := _running.get(run_id)) is not None:
        with progress.lock:
            progress.parts[part] += by


def ended(run_id: str, part: str, items: int) -> None:
    """Count all items of a part of a run as ended, which another process may have walked."""
    if (progress := _running.get(run_id)) is not None:
        with progress.lock:
            progress.parts[part] = items


def done_of(run_id: str) -> int:
    """Count the items of a run that are done so far; 0 in a process that does not show the run."""
    progress = _running.get(run_id)
    return progress.done if progress is not None else 0


@contextmanager
def shown(run_id: str, title: str, total: int) -> Iterator[None]:
    """Show a run's progress towards `total` items while the block runs."""
    from prefect.artifacts import create_progress_artifact

    progress = _running[run_id] = _Progress(total)
    artifact = cast(UUID, create_progress_artifact(0.0, key=key_of(run_id), description=title))
    try:
        with beside(partial(_show, progress, title, artifact), "progress"):
            yield
    finally:
        del _running[run_id]


@contextmanager
def beating(key: str, title: str, progress: Callable[[], float]) -> Iterator[None]:
    """Show `progress` (0 to 100) in Prefect as it changes, and every two seconds as it is.

    Whoever reads the artifact sees its time of update move for as long as this process lives.
    """
    import httpx
    from prefect.artifacts import create_progress_artifact, update_progress_artifact

    shown = progress()
    artifact = cast(UUID, create_progress_artifact(shown, key=key, description=title))

    def beat(over: threading.Event) -> None:
        last, waited = shown, 0.0
        while not over.wait(LOOK_SECONDS):
            waited += LOOK_SECONDS
            now = progress()
            if now == last and waited < BEAT_SECONDS:
                continue
            try:
                update_progress_artifact(artifact, now)
            except httpx.HTTPError:
                continue  # a server that is out of reach gets the next beat
            last, waited = now, 0.0

    with beside(beat, "heartbeat"):
        yield


def _show(progress: _Progress, title: str, artifact: UUID | None, over: threading.Event) -> None:
    import httpx
    from prefect.artifacts import update_progress_artifact
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    line_due = artifact_due = time.monotonic()
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
            if artifact is not None and (last or now >= artifact_due):
                with suppress(httpx.HTTPError):  # a server that is out of reach is told the next time
                    update_progress_artifact(artifact, 100.0 * progress.done / max(progress.total, 1))
                artifact_due = now + ARTIFACT_EVERY_SECONDS
        _bars.remove(bar)
