"""The archives of older lakes, each written by that version's own code."""

import tarfile
from pathlib import Path

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the lake of an archive into a folder, as `lake`."""
    with tarfile.open(archive) as file:
        if hasattr(tarfile, "data_filter"):  # Python 3.11 has it from 3.11.4 on
            file.extraction_filter = tarfile.data_filter
        file.extractall(folder)
