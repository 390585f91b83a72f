"""`evalake doctor`: checks the Prefect server, its workers and this machine for the scheduled work."""

from textwrap import wrap
from typing import Annotated

import typer

from evalake.cli.options import LAKE, ConfigOption, JsonOption, LakeOption

INDENT = " " * 25  # aligns with the messages


def doctor(
    config: ConfigOption = None,
    deploying: Annotated[
        bool,
        typer.Option("--deploying", help="Check the server before its workers start; silent workers are a hint."),
    ] = False,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Check that schedules fire, workers poll, versions fit, and lake, disk and keys are usable."""
    from evalake.admin.doctor import FIRST_MINUTE, Level, Place, examine
    from evalake.cli import output as show
    from evalake.cli.configuration import read
    from evalake.server.local.background import are_new
    from evalake.storage.lake import Lake

    place = Place(Lake(lake), read(config), deploying, are_new(lake, FIRST_MINUTE.total_seconds()))
    checks = []
    for check, result in examine(place):
        checks.append({"check": check.name, "level": result.level, "message": result.message, "mend": result.mend})
        if not json:
            mend = f"; {result.mend}" if result.mend else ""
            told = f"{result.level:<8} {check.name:<15} {result.message}{mend}"
            for line in wrap(told, show.width(), subsequent_indent=INDENT, break_on_hyphens=False):
                show.line(line)
    healthy = all(each["level"] != Level.PROBLEM for each in checks)
    if json:
        show.as_json({"healthy": healthy, "checks": checks})
    if not healthy:
        raise typer.Exit(1)
