"""`evalake doctor`: checks the Prefect server, its workers and this machine for the scheduled work."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Annotated, Any

import typer

from evalake.cli.options import LAKE, ConfigOption, JsonOption, LakeOption

INDENT = " " * 25  # aligns with the messages
MACHINE, DEPLOYMENT = "this machine", "the deployment"
NEEDED = {MACHINE: "every evaluation needs this, on a laptop, too", DEPLOYMENT: "schedules need this as well"}


def doctor(
    config: ConfigOption = None,
    deploying: Annotated[
        bool,
        typer.Option("--deploying", help="Check the server before its workers start; silent workers are a hint."),
    ] = False,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Check what evaluations need of this machine, and what schedules need of a Prefect server and its workers."""
    from evalake.admin.doctor import FIRST_MINUTE, Level, Place, examine
    from evalake.cli import output as show
    from evalake.cli.configuration import read
    from evalake.server.local.background import are_new
    from evalake.storage.lake import Lake

    place = Place(Lake(lake), read(config), deploying, are_new(lake, FIRST_MINUTE.total_seconds()))
    checks: list[dict[str, Any]] = []
    for check, result in examine(place):
        part = DEPLOYMENT if check.of_server else MACHINE
        if not json:
            if all(each["of"] != part for each in checks):
                show.line(f"{part.capitalize()}: {NEEDED[part]}")
            mend = f"; {result.mend}" if result.mend else ""
            text = f"{result.level:<8} {check.name:<15} {result.message}{mend}"
            for line in wrap(text, show.width(), subsequent_indent=INDENT, break_on_hyphens=False):
                show.line(line)
        told = {"check": check.name, "of": part, "level": result.level, "message": result.message}
        checks.append({**told, "mend": result.mend})
    healthy = all(each["level"] != Level.PROBLEM for each in checks)
    if json:
        show.as_json({"healthy": healthy, "checks": checks})
    else:
        show.line(_conclusion(checks))
    if not healthy:
        raise typer.Exit(1)


def _conclusion(checks: Sequence[Mapping[str, str]]) -> str:
    """Say what works, and which checks tell of a problem."""
    told = []
    for part, works in ((MACHINE, "evaluations can run on this machine"), (DEPLOYMENT, "schedules can run")):
        ours = [each for each in checks if each["of"] == part]
        wrong = [each["check"] for each in ours if each["level"] == "problem"]
        if wrong:
            told.append(f"{part} has problems: {', '.join(wrong)}")
        elif len(ours) > 1:
            told.append(works)
        elif ours:
            told.append("nothing is scheduled")
    return "; ".join(told)
