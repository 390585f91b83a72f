"""A sign of life: a progress artifact of the flow run that is touched every two seconds while a block runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast
from uuid import UUID

from tasks.runtime.beside import beside

BEAT_SECONDS = 2.0
LOOK_SECONDS = 0.2


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
