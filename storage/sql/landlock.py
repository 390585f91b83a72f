"""Confines this process and its children by Landlock, a part of the Linux kernel."""

import ctypes
import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, the same on all architectures but alpha
_VERSION_FLAG, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38

READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # number of file rights, by version
_NEWEST_RIGHTS = 16
_BIND, _CONNECT = 1 << 0, 1 << 1  # TCP, from version 4
_SCOPES = 0b11  # abstract sockets, and signals to other processes, from version 6


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Path(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """Look up the kernel's version of Landlock; 0 without it."""
    if sys.platform != "linux" or platform.machine() == "alpha":
        return 0
    known: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    return max(known, 0)


def confine(readable: Iterable[str | Path], listable: Iterable[str | Path] = (), *, connect: bool = False) -> bool:
    """Limit this process to reading below `readable`; it can no longer write or execute files.

    Call it before any thread starts: running threads stay free.

    Args:
        readable: Files and folders; missing ones are skipped.
        listable: Folders that may be listed, with all folders below.
        connect: Whether TCP connections may be opened; none may be accepted (from Landlock 4, Linux 6.7).

    Returns:
        Whether the kernel enforces this.
    """
    known = version()
    if not known:
        return False
    handled = _Ruleset(
        files=(1 << _RIGHTS.get(known, _NEWEST_RIGHTS)) - 1,
        network=(_BIND | (0 if connect else _CONNECT)) if known >= 4 else 0,
        scoped=_SCOPES if known >= 6 else 0,
    )
    size = ctypes.c_size_t(8 if known < 4 else 16 if known < 6 else 24)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(handled), size, ctypes.c_uint32(0))
    try:
        for path in readable:
            _allow(ruleset, path, READ_FILE | READ_FOLDER)
        for path in listable:
            _allow(ruleset, path, READ_FOLDER)
        if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise _error("prctl")
        _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)
    return True


def _allow(ruleset: int, path: str | Path, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it does not exist
        return
    try:
        rule = _Path(rights if Path(path).is_dir() else rights & READ_FILE, folder)
        if rule.allowed:
            _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(folder)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        raise _error("Landlock")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}")
