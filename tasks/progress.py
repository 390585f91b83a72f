"""Progress of the runs of this process: a bar on a terminal, plain lines elsewhere, and an artifact in Prefect."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

LINE_EVERY_SECONDS = 5.0
ARTIFACT_EVERY_SECONDS = 2.0

_running: dict[str, "_Progress"] = {}


@dataclass
class _Progress:
    total: int
    done: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def advance(run_id: str, by: int = 1) -> None:
    """Count answered calls or settled items of a run; without effect in a process that does not show the run."""
    if (progress := _running.get(run_id)) is not None:
        with progress.lock:
            progress.done = min(progress.done + by, progress.total)


@contextmanager
def shown(run_id: str, title: str, total: int) -> Iterator[None]:
    """Show a run's progress towards `total` while the block runs."""
    from prefect.artifacts import create_progress_artifact

    progress = _running[run_id] = _Progress(total)
    artifact = create_progress_artifact(0.0, key=f"progress-{run_id}", description=title)
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(progress, title, artifact, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        del _running[run_id]
        ended.set()
        thread.join()


def _show(progress: _Progress, title: str, artifact: UUID | None, ended: threading.Event) -> None:
    from prefect.artifacts import update_progress_artifact
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    line_due = artifact_due = time.monotonic()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown_task = bar.add_task(title, total=progress.total)
        last = False
        while not last:
            last = ended.wait(0.2)
            bar.update(shown_task, completed=progress.done)
            now = time.monotonic()
            if not console.is_terminal and (last or now >= line_due):
                console.print(f"{title}: {progress.done} of {progress.total}", highlight=False)
                line_due = now + LINE_EVERY_SECONDS
            if artifact is not None and (last or now >= artifact_due):
                update_progress_artifact(artifact, 100.0 * progress.done / max(progress.total, 1))
                artifact_due = now + ARTIFACT_EVERY_SECONDS
