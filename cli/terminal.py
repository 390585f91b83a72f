"""What people are told beside the answer, a line each, whatever a terminal cannot write and whatever names it holds."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path

import typer

from core.visible_text import on_one_line


def write_anything() -> None:
    """Write characters that the terminal's encoding lacks as escapes from now on, so that they end nothing.

    A closed stream (`>&-`) ends nothing either: what is written to it is gone.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Print a message on standard error, in one line: characters that would begin another line are escaped."""
    typer.echo(on_one_line(text), err=True)


def say_error(message: str) -> None:
    """Say what is wrong."""
    say(f"evalake: {message}")
