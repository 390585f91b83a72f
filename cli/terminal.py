"""What a terminal may be shown: text of others cannot steer it, and no character is one that it cannot write."""

import os
import re
import sys
from io import TextIOWrapper
from pathlib import Path

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def write_anything() -> None:
    """From now on, characters that the terminal's encoding lacks are written as escapes, and end nothing.

    Nor does a stream that is closed (`>&-`): what is written to it is gone.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def harmless(text: str) -> str:
    """The text with control characters, such as the beginning of a terminal's commands, written as escapes."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
