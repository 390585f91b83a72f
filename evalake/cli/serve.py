"""`evalake serve` and `view`: the scoring API with its dashboard, and the pages of runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from evalake.cli.configuration import read
from evalake.cli.help import App
from evalake.cli.options import LAKE, ConfigOption, HostOption, LakeOption, NoTokenOption, PortOption
from evalake.cli.terminal import say
from evalake.core.configuration import VIEWER_PORT
from evalake.core.errors import UsageError

app = App()


PORT = 8600


@app.command("serve")
def serve(
    sessions: Annotated[
        list[str] | None,
        typer.Option("--sessions", help="A source of further sessions.", metavar="SOURCE"),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = PORT,
    judge: Annotated[
        str | None, typer.Option(help="The judge model; default: the embedded one.", metavar="NAME")
    ] = None,
    no_token: NoTokenOption = False,
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
) -> None:
    """Serve the scoring API and the dashboard, until interrupted."""
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


@app.command("view")
def view(
    host: HostOption = "127.0.0.1",
    port: PortOption = VIEWER_PORT,
    no_token: NoTokenOption = False,
    write: Annotated[
        bool, typer.Option("--write", help="Let people label results on the pages; each write needs the token.")
    ] = False,
    config: ConfigOption = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Export a run to a folder that a browser opens without a server.", metavar="DIR"),
    ] = None,
    run: Annotated[str | None, typer.Option(help="The run to export; `evalake runs` lists them.", metavar="ID")] = None,
    lake: LakeOption = LAKE,
) -> None:
    """Serve pages of runs and samples until interrupted, read-only without --write; or export one run."""
    if (export is None) != (run is None):
        raise UsageError("--export DIR and --run ID go together: `evalake runs` lists the runs")
    if write and (no_token or export is not None):
        raise UsageError("--write serves pages that write with the token: leave out --no-token and --export")
    if export is not None and run is not None:
        _export(lake, run, export)
    else:
        _serve(lake, host, port, config, no_token=no_token, write=write)


def _serve(lake: str, host: str, port: int, config: Path | None, *, no_token: bool, write: bool) -> None:
    from evalake.server.settings import TOKEN_VARIABLE, Settings
    from evalake.server.viewer.routes import view as view_until_interrupted

    settings, made = Settings.of_command(lake, config, writes=write).guarded(no_token=no_token)
    if write and settings.token is None:  # behind trusted proxies
        raise UsageError(f"--write needs a token for each write: set {TOKEN_VARIABLE}")

    def announce(address: str) -> None:
        link = f"{address}/#token={made}" if made else address
        if settings.is_open:
            whom = ", without a token: every user of this machine can read it"
        elif settings.token is not None and not made:
            whom = f", to those who have the token in {TOKEN_VARIABLE}"
        else:
            whom = ""
        say(f"evalake shows {link} (lake {settings.lake.uri}){whom}; Ctrl-C ends it")

    view_until_interrupted(settings, host, port, announce)


def _export(lake: str, run: str, folder: Path) -> None:
    from evalake.server.settings import NotFoundError
    from evalake.server.viewer.export import export_run
    from evalake.server.viewer.run_index import RunIndexes
    from evalake.storage.lake import Lake
    from evalake.tasks.runtime.runs import no_run

    with _progress("samples written") as tell:
        try:
            page = export_run(RunIndexes(Lake(lake)), run, folder, tell)
        except NotFoundError as error:
            raise no_run(Lake(lake), run) from error
    typer.echo(f"open {page.resolve()}")


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress on standard error: on a terminal as a bar, elsewhere at each tenth."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tenths = 0
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def tell(done: int, total: int) -> None:
            nonlocal tenths
            bar.update(task, completed=done, total=total)
            if not console.is_terminal and 10 * done // total > tenths:
                tenths = 10 * done // total
                say(f"{done:,} of {total:,} {what}")

        yield tell
