"""What a terminal cannot write ends nothing: characters that its encoding lacks, and streams that are closed."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path


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
