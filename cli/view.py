"""`evalake view`: the pages of runs and samples alone, read-only, without Prefect."""

import os
from pathlib import Path
from typing import Annotated

import typer

from cli.options import LAKE, LakeOption

PORT = 8601


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("view")(view)


def view(
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.", metavar="PORT")] = PORT,
    config: Annotated[Path | None, typer.Option(help="In place of ./evalake.toml.", metavar="FILE")] = None,
    lake: LakeOption = LAKE,
) -> None:
    """Show runs and every sample of them in the browser, read-only, until interrupted."""
    from service.settings import TOKEN_VARIABLE, Settings
    from service.viewer.app import view as view_until_interrupted
    from storage.lake import Lake

    where = lake if "://" in lake else str(Path(lake).resolve())
    settings = Settings(
        lake=Lake(where),
        configuration_file=str(config.resolve()) if config else None,
        token=os.environ.get(TOKEN_VARIABLE) or None,
    )

    def announce(address: str) -> None:
        typer.echo(f"evalake shows {address} (lake {where}); Ctrl-C ends it", err=True)

    view_until_interrupted(settings, host, port, announce)
