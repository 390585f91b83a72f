"""`evalake serve`: the scoring API and the dashboard."""

from typing import Annotated

import typer

from evalake.cli.options import LAKE, ConfigOption, LakeOption, NoTokenOption
from evalake.cli.terminal import say

PORT = 8600


def serve(
    sessions: Annotated[
        list[str] | None,
        typer.Option("--sessions", help="A source of further sessions.", metavar="SOURCE"),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 picks a free one.", metavar="PORT")] = PORT,
    judge: Annotated[
        str | None, typer.Option(help="The judge model; default: the embedded one.", metavar="NAME")
    ] = None,
    no_token: NoTokenOption = False,
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
) -> None:
    """Serve the scoring API and the dashboard, until interrupted."""
    from evalake.cli.configuration import read
    from evalake.server.listening import require_reachable_by_whom
    from evalake.server.scoring.scorings import ScoringSettings
    from evalake.server.server import serve as serve_until_interrupted

    read(config)
    judging = {"judge": judge} if judge else {}
    given = ScoringSettings.of_command(lake, config, sources=tuple(sessions or ()), **judging)
    require_reachable_by_whom(given, host)  # a service that others reach needs a chosen token
    settings, made = given.guarded(no_token=no_token)

    def announce(address: str) -> None:
        if made:
            whom = f"; its token is {made}, and {address}/#token={made} opens the dashboard"
        elif settings.is_open:
            whom = ", without a token: every user of this machine can use it"
        else:
            whom = ""
        say(f"evalake serves {address} (lake {settings.lake.uri}, judge {settings.judge}){whom}; Ctrl-C ends it")

    serve_until_interrupted(settings, host, port, announce)
