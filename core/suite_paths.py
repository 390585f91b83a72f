"""Where suites of one's own are: the folders that configurations list that the user chose, for suites are code."""

import os
from pathlib import Path

from core.configuration import CONFIGURATION_FILE, FILE_VARIABLE, HOME_VARIABLE, read_configuration, users_file
from core.errors import ConfigurationError


def suite_paths() -> tuple[Path, ...]:
    """List the folders of `suite_paths` in the user's own configuration, and in a file that the user named.

    A file that merely lies in the working directory is not read: its suites are code, which any command would run.

    Raises ConfigurationError where an entry is no folder.
    """
    folders: dict[Path, None] = {}
    for file in _trusted_files():
        for entry in read_configuration(file).suite_paths:
            folder = (file.parent / entry.expanduser()).resolve()
            if not folder.is_dir():
                raise ConfigurationError(f"suite_paths of {file} names {folder}, which is no folder")
            folders[folder] = None
    return tuple(folders)


def _trusted_files() -> list[Path]:
    named, home = os.environ.get(FILE_VARIABLE), os.environ.get(HOME_VARIABLE)
    files = [users_file(), *([Path(home) / CONFIGURATION_FILE] if home else [])]
    return [*(file for file in files if file.is_file()), *([Path(named)] if named else [])]
