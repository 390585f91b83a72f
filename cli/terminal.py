"""What a terminal may be shown: text of others cannot steer it, and no character is one that it cannot write."""

import re
import sys
from io import TextIOWrapper

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed


def write_anything() -> None:
    """From now on, characters that the terminal's encoding lacks are written as escapes, and end nothing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def harmless(text: str) -> str:
    """The text with control characters, such as the beginning of a terminal's commands, written as escapes."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
