"""What a person reads between Enter and the first line of an answer."""

import sys
from collections.abc import Callable
from functools import partial
from typing import TextIO

ERASE = "\r\x1b[2K"
DOING = {
    "run": "reading the suite, its samples and the ledger",
    "serve": "starting the service",
    "init": "writing the project",
    "doctor": "looking at server, keys and lake",
}
READING = "opening the lake"
SAID = False  # whether it stands on the terminal already


def say_what_is_done(command: str) -> None:
    """Write what the command begins with on the terminal; the next thing that is written takes its place.

    It is for people only: where standard error is no terminal, nothing is written.
    """
    if not sys.stderr.isatty():
        return
    _until_more(f"evalake {command}: {DOING.get(command, READING)} …")


def _until_more(line: str) -> None:
    streams = [stream for stream in (sys.stderr, sys.stdout) if stream.isatty()]
    if not SAID:
        sys.stderr.write(line)
        sys.stderr.flush()
    for stream in streams:
        stream.write = partial(_write_instead, streams, type(stream).write, stream)  # type: ignore[method-assign]


def _write_instead(streams: list[TextIO], write: Callable[[TextIO, str], int], stream: TextIO, text: str) -> int:
    for each in streams:
        del each.write
    sys.stderr.write(ERASE)
    sys.stderr.flush()
    return write(stream, text)
