"""The warm process of `evalake up`: `python -m cli.warm.process LAKE`, started beside its servers for commands."""

import fcntl
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import cli
from cli import environment, waiting
from cli.main import main as command
from cli.warm.client import address
from cli.warm.copies import End, await_request, take_the_callers_place
from cli.warm.imports import import_first, import_the_rest
from cli.warm.likeness import likeness
from service.local.background import WARM


def serve(lake: str) -> None:
    """Import everything, and carry out commands until told to end. A copy returns when its command has ended."""
    _end_with_supervisor()
    first_environment = dict(os.environ)
    environment.prepare()
    ours = likeness()
    folder = _use_servers(lake)
    for module in iter_modules(cli.__path__):
        if module.name != "__main__" and not module.ispkg:
            import_module(f"cli.{module.name}")
    import_module("fastapi")
    import_first()
    import_the_rest()
    with _listener(folder) as listener:
        request = await_request(listener, ours, owner=sys.stdin.fileno())  # its line to the supervisor
    if request is End.NOBODY_COMES:
        return
    if isinstance(request, End):  # something was installed or edited since: begin anew with that
        os.execve(sys.executable, sys.orig_argv, first_environment)
    take_the_callers_place(request)
    waiting.SAID = True  # by the caller
    command()


def _end_with_supervisor() -> None:
    """Have the kernel end this process, by SIGIO, when the supervisor has closed its line, also amid imports."""
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC)


def _use_servers(lake: str) -> Path:
    """Have Prefect use the lake's servers from its import on; returns the folder of their state."""
    from service.local.background import find, folder_of

    if (background := find(lake)) is not None:
        background.use()
    return folder_of(lake)


@contextmanager
def _listener(folder: Path) -> Iterator[socket.socket]:
    (folder / WARM).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        os.umask(0o077)
        with address(folder) as place:
            listener.bind(place)
        listener.listen()
        yield listener


if __name__ == "__main__":
    serve(sys.argv[1])
