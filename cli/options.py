"""Options that several commands share."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from core.default_lake import DEFAULT_LAKE, VARIABLE


def use_servers_in_background(lake: str) -> str:
    """Use the Prefect server that `evalake up` keeps for the lake, where no other one is named; returns the lake."""
    from cli.environment import names_a_server
    from service.local.background import find

    if not names_a_server() and (background := find(lake)) is not None:
        background.use()
    return lake


LakeOption = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar=VARIABLE,
        help="The lake: a folder, or a URI that Delta supports.",
        metavar="URI",
        callback=use_servers_in_background,
    ),
]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="In place of ./evalake.toml.", metavar="FILE")]
JudgesOption = Annotated[
    str | None, typer.Option("--judges", help="Judge models, by comma, where the suite has judges.", metavar="NAMES")
]
DatasetOption = Annotated[
    list[str] | None,
    typer.Option("--dataset", help="A source of samples; may be given several times.", metavar="SOURCE"),
]
TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", help="A tag by which the run is found again; may be given several times.", metavar="TAG"),
]
NoteOption = Annotated[str | None, typer.Option("--note", help="What else is to be known of the run.", metavar="TEXT")]
NewestTaggedOption = Annotated[
    str | None, typer.Option("--tag", help="The newest run with this tag that was measured.", metavar="TAG")
]
MaxMissingOption = Annotated[
    float | None,
    typer.Option(
        help="The share of a model's items that may be missing; above it the run is incomplete. Default: 0.05.",
        metavar="SHARE",
    ),
]
AcceptUnreadableOption = Annotated[
    bool, typer.Option("--accept-unreadable", help="Take replies without a verdict as wrong answers, however many.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else.")]
LAKE = DEFAULT_LAKE


class Format(StrEnum):
    """How rows are printed."""

    table = "table"
    json = "json"
    csv = "csv"


StyleOption = Annotated[Format, typer.Option("--format", help="How rows are printed.", metavar="table|json|csv")]
RowsAsJsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


def style_of(style: Format, *, as_json: bool) -> Format:
    """Choose how rows are printed, from both options. Raises UsageError where they contradict each other."""
    from core.errors import UsageError

    if as_json and style is Format.csv:
        raise UsageError("--json and --format csv are two forms: leave one out")
    return Format.json if as_json else style


def suite_with(what: str, known: Sequence[str], wanted: str | None) -> str:
    """Choose the suite that is wanted, or the first that has such a thing. Raises UsageError where it has none."""
    from core.errors import UsageError

    if wanted is not None and wanted not in known:
        raise UsageError(f"{wanted} has no {what}: choose one of {', '.join(known)}")
    return wanted or known[0]


def names(option: str, text: str | None) -> list[str] | None:
    """Split a comma-separated option into a list; None where it was not given. Raises UsageError where it is empty."""
    from core.errors import UsageError

    if text is None:
        return None
    given = [part.strip() for part in text.split(",") if part.strip()]
    if not given:  # an empty variable of a script: the default would be a surprise
        raise UsageError(f"{option} names nothing: leave it out for the default")
    return given
