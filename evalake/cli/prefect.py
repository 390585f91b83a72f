"""`evalake prefect`: runs Prefect's own command without settings of the working directory.

It starts servers on a socket that it has bound: Prefect binds a free port seconds after choosing it.
"""

import os
import signal
import sys
import threading

import typer

from evalake.cli.environment import DEFAULTS, lock_server
from evalake.cli.help import App
from evalake.cli.options import use_servers_in_background
from evalake.cli.terminal import say
from evalake.core.configuration import lake_uri
from evalake.core.errors import EvalakeError, UsageError
from evalake.core.prefect_settings import prefect_setting
from evalake.server.local.background import PATIENCE
from evalake.server.local.database import leave_working_directory
from evalake.server.processes import Supervised, address_of, listen

LOOK_SECONDS = 0.2
# `evalake.server` keeps the working directory's settings out
_PREFECT = "import runpy, evalake.server; runpy.run_module('prefect', run_name='__main__', alter_sys=True)"

_DEPLOY = "import sys; from evalake.server.local import deployment; sys.exit(deployment.deploy(*sys.argv[1:]))"
"""Deploys the automations, too, and asks nothing."""


app = App()


# Passes on all options, even `--help`
@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    options_metavar="",
    add_help_option=False,
)
def prefect(context: typer.Context) -> None:
    """Run Prefect's own command, like `worker start`, without settings of this folder."""
    use_servers_in_background(lake_uri(None))
    if context.args[:2] == ["server", "start"] and "--help" not in context.args:
        if password := lock_server():
            user, _, word = password.partition(":")
            say(f"this server asks for user {user}, password {word}; PREFECT_SERVER_API_AUTH_STRING chooses")
        _serve(*_address(context.args[2:]))
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


def _serve(host: str, port: int) -> None:
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
