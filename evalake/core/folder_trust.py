"""Folders that the user trusts, kept in the user's own state with a hash of their Python, TOML and YAML files.

A change of any of these files, or another one, ends the trust. The environment that this process runs from is left out:
its code runs already.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalake.core.errors import InputError, UsageError
from evalake.core.files import is_ours, make_private, read_file, state_folder, write_file

SUFFIXES = (".py", ".pyc", ".so", ".toml", ".yaml", ".yml")
MOST_FILES = 20_000
_LARGEST = 64 * 1024 * 1024


def is_trusted(folder: Path) -> bool:
    """Tell whether the user trusts the folder as it is now."""
    return _is_as_told(folder, "trusted")


def is_covered(folder: Path) -> bool:
    """Tell whether the user trusts the folder, or one that holds it, as it is now."""
    return any(map(is_trusted, (folder, *folder.parents)))


def was_trusted(folder: Path) -> bool:
    """Tell whether the user trusted the folder, as it is or as it was."""
    return _of(folder).get("trusted") is not None


def is_refused(folder: Path) -> bool:
    """Tell whether the user has refused to trust the folder as it is now."""
    return _is_as_told(folder, "refused")


def _is_as_told(folder: Path, answer: str) -> bool:
    told = _of(folder).get(answer)
    try:
        return told is not None and told == folder_hash(folder)
    except InputError:  # it could be hashed when the user answered, so that it has changed; `remember` says why
        return False


def remember(folder: Path, *, trusted: bool) -> None:
    """Remember the user's answer about the folder as it is now."""
    _write(folder, {"trusted" if trusted else "refused": folder_hash(folder)}, {"trusted", "refused"})


@contextmanager
def kept(folder: Path) -> Iterator[None]:
    """Keep the user's trust in the folder over this block, which adds files of evalake's own to it."""
    trusted = is_trusted(folder)
    yield
    if trusted:
        remember(folder, trusted=True)


def forget(folder: Path) -> None:
    """Forget the user's answers about the folder."""
    _write(folder, {}, {"trusted", "refused", "suites"})


def suites_of(folder: Path) -> tuple[Path, ...]:
    """List the suites' files that commands in this folder were given by path, as far as they are there."""
    return tuple(path for name in _of(folder).get("suites", ()) if (path := Path(name)).is_file())


def remember_suite(folder: Path, file: Path) -> None:
    """Remember a suite's file that a command in this folder was given by path."""
    known = [str(path) for path in suites_of(folder)]
    if str(file) not in known:
        _write(folder, {"suites": [*known, str(file)]}, set())


def holds_no_code(folder: Path) -> bool:
    """Tell whether none of the files that trust is about lies in the folder, or the folder is not there."""
    return next(_files(folder), None) is None


def folder_hash(folder: Path) -> str:
    """Hash the names and contents of the folder's Python, TOML and YAML files, and its links.

    Raises UsageError where they are too many to be looked at, or one cannot be read.
    """
    digest = hashlib.sha256()
    for number, path in enumerate(_files(folder)):
        if number >= MOST_FILES:
            raise UsageError(f"{folder} has more than {MOST_FILES} files of code and settings: use a folder of its own")
        name = str(path.relative_to(folder)).encode("utf-8", "surrogateescape")
        content = os.fsencode(path.readlink()) if path.is_dir() else read_file(path.resolve(), _LARGEST)
        digest.update(len(name).to_bytes(4, "big") + name + hashlib.sha256(content).digest())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    environment = Path(sys.prefix).resolve()
    for root, folders, names in os.walk(folder, followlinks=False):
        here = Path(root)
        links = [here / name for name in sorted(folders) if (here / name).is_symlink()]
        for link in links:  # one within the folder, like lib64 of an environment, leads to files that are looked at
            if not link.resolve().is_relative_to(folder.resolve()):
                raise UsageError(f"{link} is a link to another folder, which trust does not cover: remove it")
        yield from links
        folders[:] = sorted(name for name in folders if (here / name).resolve() != environment)
        yield from (here / name for name in sorted(names) if _is_code(here / name) and (here / name).is_file())


def _is_code(file: Path) -> bool:
    """Tell whether a name is that of code or settings, `.py` alone included; not of byte code that Python keeps."""
    kept = file.parent.name == "__pycache__" and file.suffix == ".pyc" and file.name.count(".") > 1  # no module's name
    return file.name.lower().endswith(SUFFIXES) and not kept


def _file() -> Path:
    return state_folder() / "trusted_folders.json"


def _read() -> dict[str, Any]:
    """Read the user's state; one that is not the user's, or is none, says nothing."""
    file = _file()
    try:
        if not file.is_file() or not is_ours(file):
            return {}
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _of(folder: Path) -> dict[str, Any]:
    said = _read().get(str(folder.resolve()), {})
    return said if isinstance(said, dict) else {}


def _write(folder: Path, said: dict[str, Any], instead_of: set[str]) -> None:
    file, state = _file(), _read()
    kept = {name: value for name, value in _of(folder).items() if name not in instead_of}
    state[str(folder.resolve())] = {**kept, **said}
    try:
        make_private(file.parent)
        write_file(file, json.dumps(state, indent=1))
    except OSError as error:
        raise UsageError(f"cannot remember it in {file}: {error.strerror}; give --trust-folder instead") from error
