"""Which lake is meant: the one that is named, or that of the environment, or the folder `lake`."""

import os

DEFAULT_LAKE = "./lake"
VARIABLE = "EVALAKE_LAKE"


def lake_uri(named: str | None) -> str:
    """Return the lake that is named, else EVALAKE_LAKE, else `./lake`."""
    return named or os.environ.get(VARIABLE) or DEFAULT_LAKE
