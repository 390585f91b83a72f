"""Prefect's settings, looked up without Prefect, whose import takes seconds."""

import os
import tomllib
from pathlib import Path


def prefect_home() -> Path:
    """Name the folder in which Prefect keeps its profiles and, unless it is told otherwise, its database."""
    return Path(os.environ.get("PREFECT_HOME") or Path.home() / ".prefect").expanduser()


def prefect_setting(name: str) -> str | None:
    """Look up a setting of Prefect in the environment, or else in its active profile."""
    if name in os.environ:
        return os.environ[name]
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or prefect_home() / "profiles.toml")
    try:
        read = tomllib.loads(profiles.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    active = os.environ.get("PREFECT_PROFILE") or read.get("active")
    value = read.get("profiles", {}).get(active, {}).get(name)
    return str(value) if value else None
