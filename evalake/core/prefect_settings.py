"""Reads Prefect's settings without importing Prefect, and keeps out those of the working directory.

Prefect reads `.env`, `prefect.toml` and `pyproject.toml` of the working directory, and one of its settings names a file
that runs code. The environment and the user's profiles stay in force.
"""

import gc
import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

PROFILES = "PREFECT_PROFILES_PATH"
SEEN_IN = "2.16"  # the version of pydantic-settings whose two private functions are replaced here


def prefect_home() -> Path:
    """Return the folder of Prefect's profiles and, by default, its database."""
    return Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser()


def prefect_setting(name: str) -> str | None:
    """Look up a setting of Prefect in the environment, else in its active profile."""
    if name in os.environ:
        return os.environ[name]
    profiles = Path(os.environ.get(PROFILES) or prefect_home() / "profiles.toml")
    try:
        read = tomllib.loads(profiles.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    active = os.environ.get("PREFECT_PROFILE") or read.get("active")
    value = read.get("profiles", {}).get(active, {}).get(name)
    return str(value) if value else None


def ignore_working_directory() -> None:
    """Keep Prefect in this process from reading settings in the working directory.

    The entry of every process calls this: the command, `evalake/server/__init__.py` and `flows/__init__.py`. Prefect
    looks for its profiles in the same files, so the command names them by PROFILES.
    """
    # Where Jupyter has installed this package, jsonschema compiles a grammar with it for a second
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    # Garbage collection takes a tenth of the time of imports
    gc.set_threshold(50_000, 10, 10)
    if "pydantic_settings" in sys.modules:
        _ignore_files()
    elif not any(isinstance(finder, _BeforeImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, _BeforeImport())


class _BeforeImport(MetaPathFinder):
    """Changes pydantic-settings when Prefect is imported."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "prefect":
            sys.meta_path.remove(self)
            _ignore_files()


def _ignore_files() -> None:
    """Replace the two functions by which pydantic-settings reads files, for Prefect's settings only.

    Raises AttributeError where pydantic-settings lacks them.
    """
    from pydantic_settings.sources import ConfigFileSourceMixin, DotEnvSettingsSource

    for owner, name in ((DotEnvSettingsSource, "_read_env_files"), (ConfigFileSourceMixin, "_read_files")):
        if not hasattr(read := getattr(owner, name), "reads_nothing_for"):
            setattr(owner, name, _unless_of_prefect(read))


def _unless_of_prefect(read: Callable[..., Any]) -> Callable[..., Any]:
    def read_files(source: Any, *arguments: Any, **options: Any) -> Any:
        is_of_prefect = any(each.__module__ == "prefect.settings.base" for each in source.settings_cls.__mro__)
        return {} if is_of_prefect else read(source, *arguments, **options)

    read_files.reads_nothing_for = "prefect"  # type: ignore[attr-defined]
    return read_files
