"""`evalake serve`, `view` and `prefect`: the scoring API with its dashboard, the pages of runs, and Prefect itself."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from evalake.cli import options
from evalake.cli.configuration import read
from evalake.cli.help import App
from evalake.cli.terminal import DEFAULTS, lock_server, say
from evalake.core.configuration import VIEWER_PORT, lake_uri
from evalake.core.errors import EvalakeError, UsageError
from evalake.core.prefect_settings import prefect_setting
from evalake.server.local.server import leave_working_directory
from evalake.server.local.supervisor import PATIENCE
from evalake.server.processes import Supervised, address_of, listen

app = App()
PORT = 8600


@app.command("serve")
def serve(
    sessions: Annotated[list[str] | None, typer.Option(help="A source of further sessions.", metavar="SOURCE")] = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = PORT,
    judge: Annotated[
        str | None, typer.Option(help="The judge model; default: the embedded one.", metavar="NAME")
    ] = None,
    no_token: options.NoToken = False,
    config: options.Config = None,
    lake: options.Lake = options.LAKE,
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
    options.require_lake(lake)

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
    host: options.Host = "127.0.0.1",
    port: options.Port = VIEWER_PORT,
    no_token: options.NoToken = False,
    write: Annotated[
        bool, typer.Option("--write", help="Let people label results on the pages; each write needs the token.")
    ] = False,
    config: options.Config = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Export a run to a folder that a browser opens without a server.", metavar="DIR"),
    ] = None,
    run: Annotated[str | None, typer.Option(help="The run to export; `evalake runs` lists them.", metavar="ID")] = None,
    lake: options.Lake = options.LAKE,
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
    options.require_lake(lake)

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
    from evalake.server.viewer.export import export_run
    from evalake.server.viewer.run_index import RunIndexes
    from evalake.tasks.runtime.runs import run_row

    where = options.open_lake(lake)
    run_row(where, run)  # which names runs that resemble it, where there is none
    with _progress("samples written") as tell:
        page = export_run(RunIndexes(where), run, folder, tell)
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


# Prefect's own command. It starts servers on a socket that it has bound: Prefect binds a free port seconds after
# choosing it.


LOOK_SECONDS = 0.2
# `evalake.server` keeps the working directory's settings out
_PREFECT = "import runpy, evalake.server; runpy.run_module('prefect', run_name='__main__', alter_sys=True)"

# Deploys the automations, too, and asks nothing
_DEPLOY = "import sys; from evalake.server.local import deployment; sys.exit(deployment.deploy(*sys.argv[1:]))"


# Passes on all options, even `--help`
@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    options_metavar="",
    add_help_option=False,
)
def prefect(context: typer.Context) -> None:
    """Run Prefect's own command, like `worker start`, without settings of this folder."""
    options.use_servers_in_background(lake_uri(None))
    if context.args[:2] == ["server", "start"] and "--help" not in context.args:
        if password := lock_server():
            user, _, word = password.partition(":")
            say(f"this server asks for user {user}, password {word}; PREFECT_SERVER_API_AUTH_STRING chooses")
        _serve_prefect(*_address(context.args[2:]))
        return
    # A worker writes to its log only
    level = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
    environment = {name: value for name, value in os.environ.items() if (name, value) != (level, DEFAULTS[level])}
    if context.args[:2] == ["worker", "start"]:
        environment = {**PATIENCE, **environment}
    sys.stdout.flush()
    # Background processes of a script ignore SIGINT, by which a worker ends itself
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = context.args
    plain = [each for each in arguments if each != "--no-prompt"]
    if is_deploy := plain[:1] == ["deploy"]:
        arguments = plain[1:]
    code = _DEPLOY if is_deploy else _PREFECT
    os.execve(sys.executable, [sys.executable, "-P", "-c", code, *arguments], environment)


def _address(options: list[str]) -> tuple[str, int]:
    """Read host and port from the options of `server start`. Raises UsageError for any other."""
    named = {
        "--host": prefect_setting("PREFECT_SERVER_API_HOST") or "127.0.0.1",
        "--port": prefect_setting("PREFECT_SERVER_API_PORT") or "4200",
    }
    words = iter(options)
    for word in words:
        name, is_joined, value = word.partition("=")
        if name not in named:
            raise UsageError(
                f"`evalake prefect server start` takes --host and --port, not {word}: `evalake up` keeps a server in "
                "the background, with a worker and the pages; settings of Prefect are taken from the environment"
            )
        named[name] = value if is_joined else next(words, "")
    if not named["--port"].isdecimal():
        raise UsageError(f"--port {named['--port']!r} is not a port number")
    return named["--host"], int(named["--port"])


def _serve_prefect(host: str, port: int) -> None:
    """Serve Prefect on a socket of this process, so that no other process gets the port, until a signal."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    with listen(host, port) as listener:
        leave_working_directory()
        address = address_of(listener)
        if not (prefect_setting("PREFECT_SERVER_UI_API_URL") or prefect_setting("PREFECT_UI_API_URL")):
            os.environ["PREFECT_SERVER_UI_API_URL"] = f"{address}/api"  # for Prefect's own pages
        server = Supervised("evalake.server.local.server", str(listener.fileno()), holding=[listener])
        try:
            is_told = False
            while server.is_running and not over.is_set():
                if server.is_ready(LOOK_SECONDS) and not is_told:
                    is_told = True
                    say(f"Prefect's server and pages are at {address}; Ctrl-C ends them")
                over.wait(LOOK_SECONDS)
        finally:
            server.stop()
    if not over.is_set():
        raise EvalakeError("the Prefect server ended unexpectedly: its messages are above")
