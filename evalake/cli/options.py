"""Options that commands share."""

from collections.abc import Callable, Sequence
from datetime import date
from enum import StrEnum
from functools import update_wrapper
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.core.configuration import DEFAULT_LAKE, VARIABLE
from evalake.core.errors import UsageError
from evalake.request import OPTIONS, Option

if TYPE_CHECKING:
    from evalake.storage import lake as storage


def use_servers_in_background(lake: str) -> str:
    """Use the lake's Prefect server of `evalake up`, unless another is named; returns the lake."""
    from evalake.cli.terminal import names_a_server
    from evalake.server.local.supervisor import find

    if not names_a_server() and (background := find(lake)) is not None:
        background.use()
    return lake


def open_lake(uri: str) -> "storage.Lake":
    """Open a lake. What reads it is imported only now, because help has to be quick."""
    from evalake.storage.lake import Lake

    return Lake(uri)


def require_lake(uri: str) -> None:
    """Raise LakeError where a lake cannot be read, like a bucket that does not exist; one without tables is fine."""
    from evalake.contracts.tables import RUNS

    open_lake(uri).exists(RUNS)


Lake = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar=VARIABLE,
        help=OPTIONS["lake"].text,
        metavar=OPTIONS["lake"].metavar,
        callback=use_servers_in_background,
    ),
]


def declared(name: str) -> Any:
    """Build a command-line option from an option of a run."""
    option = OPTIONS[name]
    text = option.text + " Can be repeated." * (option.separator == "\n")
    return typer.Option(option.flag, help=text, metavar=option.metavar or None)


NoToken = Annotated[
    bool,
    typer.Option("--no-token", help="Allow everybody on this machine without a token; only on a loopback address."),
]
Config = Annotated[Path | None, declared("configuration_file")]
Run = Annotated[str, typer.Argument(help="The run; `evalake runs` lists them.", metavar="RUN")]
OtherSide = Annotated[str, typer.Argument(help="The other side, in the same form.", metavar="B")]
RunOfModels = Annotated[
    str | None, typer.Option("--run", help="The run of the models; default: the newest with them.", metavar="ID")
]
DecidingMetric = Annotated[
    str | None, typer.Option("--metric", help="The metric; default: the ranking one.", metavar="NAME")
]
Force = Annotated[
    bool, typer.Option("--force", help="Compare results that are not comparable, and print why they are not.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the changes, and make none.")]
Host = Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 picks a free one.", metavar="PORT")]
NewestTagged = Annotated[
    str | None, typer.Option("--tag", help="The newest measured run with this tag.", metavar="TAG")
]
Suite = Annotated[str | None, typer.Option("--suite", help="Only of this suite.", metavar="SUITE")]
Full = Annotated[bool, typer.Option("--full", help="Print every table of the summary.")]
Corrected = Annotated[
    bool, typer.Option("--corrected", help="Rates corrected by people's labels, or by a calibration of the judge.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object only.")]
LAKE = DEFAULT_LAKE


class Format(StrEnum):
    """The format of printed rows."""

    table = "table"
    json = "json"
    csv = "csv"


Style = Annotated[Format, typer.Option("--format", help="The format of rows.", metavar="table|json|csv")]
RowsAsJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]


def style_of(style: Format, *, as_json: bool) -> Format:
    """Choose the format from both options. Raises UsageError where they contradict each other."""
    if as_json and style is Format.csv:
        raise UsageError("--json and --format csv contradict each other: leave one out")
    return Format.json if as_json else style


def suite_with(what: str, known: Sequence[str], wanted: str | None) -> str:
    """Choose the wanted suite, or the first with such a thing. Raises UsageError where it lacks one."""
    if wanted is not None and wanted not in known:
        raise UsageError(f"{wanted} has no {what}: choose one of {', '.join(known)}")
    return wanted or known[0]


def names(option: str, text: str | None) -> list[str] | None:
    """Split a comma-separated option into a list; None without it. Raises UsageError for an empty one."""
    if text is None:
        return None
    given = [part.strip() for part in text.split(",") if part.strip()]
    if not given:  # like an empty variable of a script
        raise UsageError(f"{option} names nothing: leave it out for the default")
    return given


def takes(*options: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add options of a run to a command, whose first argument has the given values by name."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def with_options(**given: Any) -> None:
            values = {name: _value(OPTIONS[name], given.pop(name)) for name in options}
            command({name: value for name, value in values.items() if value is not None}, **given)

        _, *own = signature(command, eval_str=True).parameters.values()
        parameters = [*(_parameter(OPTIONS[name]) for name in options), *own]
        update_wrapper(with_options, command)
        with_options.__annotations__ = {each.name: each.annotation for each in parameters}
        with_options.__signature__ = Signature(  # type: ignore[attr-defined]
            [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
        )
        return with_options

    return decorate


def _parameter(option: Option) -> Parameter:
    """Make an option a parameter of a command."""
    if option.name == "lake":
        return Parameter("lake", Parameter.KEYWORD_ONLY, default=LAKE, annotation=Lake)
    default = option.default if isinstance(option.default, int) else None
    of: Any = list[str] if option.separator == "\n" else str if option.type in (date, Path) else option.type
    of = of | None if default is None else of
    return Parameter(
        option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[of, declared(option.name)]
    )


def _value(option: Option, given: Any) -> Any:
    return names(option.flag, given) if option.separator == "," else given
