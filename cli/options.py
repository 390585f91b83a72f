"""Options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

from cli.environment import DEFAULT_LAKE

LakeOption = Annotated[
    str,
    typer.Option(
        "--lake", envvar="EVALAKE_LAKE", help="The lake: a folder, or a URI that Delta supports.", metavar="URI"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
LAKE = DEFAULT_LAKE


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    json = "json"
    csv = "csv"


def names(text: str | None) -> list[str] | None:
    """A comma-separated option as a list; None where it was not given."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]
