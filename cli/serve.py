"""`evalake serve`: the scoring API and the dashboard."""

import os
from typing import Annotated

import typer

from cli.options import LAKE, ConfigOption, LakeOption
from cli.terminal import say
from core.default_lake import whole_address

PORT = 8600


def serve(
    sessions: Annotated[
        list[str] | None,
        typer.Option("--sessions", help="A source of sessions, read beside the lake's.", metavar="SOURCE"),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.", metavar="PORT")] = PORT,
    judge: Annotated[
        str | None, typer.Option(help="The judge model; default: the embedded one.", metavar="NAME")
    ] = None,
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
) -> None:
    """Serve the scoring API and the dashboard, until interrupted."""
    from cli.configuration import read
    from service.scoring.settings import ScoringSettings
    from service.server import serve as serve_until_interrupted
    from service.settings import TOKEN_VARIABLE
    from storage.lake import Lake

    read(config)
    # The flow runs elsewhere: a folder means the same there only as a whole path.
    where = whole_address(lake)
    settings = ScoringSettings(
        lake=Lake(where),
        sources=tuple(sessions or ()),
        configuration_file=str(config.resolve()) if config else None,
        token=os.environ.get(TOKEN_VARIABLE) or None,
        **({"judge": judge} if judge else {}),
    )

    def announce(address: str) -> None:
        say(f"evalake serves {address} (lake {where}, judge {settings.judge}); Ctrl-C ends it")

    serve_until_interrupted(settings, host, port, announce)
