"""Which lake is meant: the one that is named, or that of the environment, or the folder `lake`."""

import os
from pathlib import Path

DEFAULT_LAKE = "./lake"
VARIABLE = "EVALAKE_LAKE"


def lake_uri(named: str | None) -> str:
    """Choose the lake: the one that is named, else EVALAKE_LAKE, else `./lake`."""
    return named or os.environ.get(VARIABLE) or DEFAULT_LAKE


def whole_address(lake: str) -> str:
    """Make a lake's address absolute, so that it means the same in every working directory."""
    return lake if "://" in lake else str(Path(lake).resolve())
