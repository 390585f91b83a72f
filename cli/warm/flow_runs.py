"""The warm process of a worker: `python -m cli.warm.flow_runs FOLDER SOCKET`; its flow runs are copies of it.

A worker starts one with its first flow run, which waits for the imports as it would have waited for its own; those that
follow begin at once. It ends with its worker, and where no flow run has come for a while, so that it holds no memory.
"""

import atexit
import logging
import os
import runpy
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from cli.warm.client import address
from cli.warm.copies import End, await_request, take_the_callers_place
from cli.warm.flow_run import ENGINE
from cli.warm.likeness import likeness

IDLE_SECONDS = 900.0
_LOG = logging.getLogger(__name__)
_WAITING = 128  # flow runs that may wait for the imports
_RARE = 2  # after so many flow runs LiteLLM and the rest are imported, too, which takes seconds, and which not all need


class WarmFlowRuns:
    """The warm process of the worker that this is, started and started again when a flow run needs it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path()
        self._fails = False

    def command(self, environment: Mapping[str, str]) -> str:
        """Return the command line of a flow run with this environment."""
        ended = 0 if self._process is None else self._process.poll()
        if ended == 0 and not self._fails:  # it was idle
            try:
                self._start(environment)
            except OSError as error:
                _LOG.warning("flow runs begin by themselves, for no process can be kept ready for them: %s", error)
                self._fails = True
        elif ended:  # it would fail again; why stands in the worker's log
            shutil.rmtree(self._folder, ignore_errors=True)
            self._fails = True
        if self._fails:
            return shlex.join([sys.executable, "-m", ENGINE])
        return shlex.join([sys.executable, "-P", "-m", "cli.warm.flow_run", str(self._folder)])

    def _start(self, environment: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="evalake-flow-runs-"))  # nobody else may enter it
        # The process removes it at its end; where both are told to end it may be killed before.
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        with socket.socket(socket.AF_UNIX) as listener:
            with address(self._folder) as place:
                listener.bind(place)
            listener.listen(_WAITING)
            descriptor = listener.fileno()
            # It ends with its standard input, which this process holds.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "cli.warm.flow_runs", str(self._folder), str(descriptor)],
                env=environment,
                pass_fds=[descriptor],
                stdin=subprocess.PIPE,
            )


def serve(folder: Path, descriptor: int) -> None:
    """Import what flow runs need, and be each of them in a copy, until the worker ends or none comes any more.

    Args:
        folder: The folder of the socket, which is removed at the end.
        descriptor: The socket, at which callers can be waiting already.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the worker, which tells its flow runs
    first_environment, ours = dict(os.environ), likeness()
    from cli.warm.imports import import_first, import_the_rest

    import_first()
    listener = socket.socket(fileno=descriptor)
    await_one = partial(await_request, listener, ours, owner=sys.stdin.fileno(), idle_seconds=IDLE_SECONDS)
    if (request := await_one(most=_RARE)) is End.ENOUGH_CAME:
        import_the_rest()
        request = await_one()
    if request is End.CODE_HAS_CHANGED:
        listener.set_inheritable(True)
        os.execve(sys.executable, sys.orig_argv, first_environment)
    if isinstance(request, End):
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)
        return
    take_the_callers_place(request)
    if not os.environ.get("PYTHONSAFEPATH"):
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    sys.argv = [ENGINE]
    sys.modules.pop(ENGINE, None)
    runpy.run_module(ENGINE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
