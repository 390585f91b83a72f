"""Ctrl-C: what was answered is kept, the run is marked, and the process leaves at once.

Prefect would wait for batches to end and for a temporary server that the same Ctrl-C has ended. Nothing needs that:
a run may be killed at any moment, and goes on from the ledger.
"""

import os
import signal
from types import FrameType

import typer

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def leave_at_once() -> None:
    """From now on, Ctrl-C ends the process as this module says."""
    signal.signal(signal.SIGINT, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    from prefect.server.api.server import SubprocessASGIServer

    from tasks import resources, runs

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resources.flush_writers()
    runs.mark_interrupted()
    for server in list(SubprocessASGIServer._instances.values()):  # no public way to end a temporary server exists
        server.stop()
    typer.echo("evalake: interrupted; what was answered is in the ledger, a rerun asks only for the rest", err=True)
    os._exit(INTERRUPTED)
