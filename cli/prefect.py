"""`evalake prefect`: Prefect's own command, which then takes no settings from the folder that it is started in."""

import os
import signal
import sys

import typer

from cli.terminal import say

# `service` keeps the working directory's settings out
_PREFECT = "import runpy, service; runpy.run_module('prefect', run_name='__main__', alter_sys=True)"


def register(app: typer.Typer) -> None:
    """Add the command, which hands on all options, `--help` among them."""
    words = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command("prefect", context_settings=words, options_metavar="", add_help_option=False)(prefect)


def prefect(context: typer.Context) -> None:
    """Run Prefect's own command, such as `worker start`, without settings of this folder."""
    from cli.environment import DEFAULTS, lock_server
    from cli.options import use_servers_in_background
    from core.default_lake import lake_uri
    from service.local.background import PATIENCE
    from service.local.database import leave_working_directory, start_settings, usual_database

    use_servers_in_background(lake_uri(None))

    if is_server := context.args[:2] == ["server", "start"]:
        leave_working_directory()
    if is_server and (password := lock_server()):
        user, _, word = password.partition(":")
        say(f"this server asks for user {user}, password {word}; PREFECT_SERVER_API_AUTH_STRING chooses")

    # The command itself says errors in one line; a worker and a server have nothing but their log.
    level = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
    environment = {name: value for name, value in os.environ.items() if (name, value) != (level, DEFAULTS[level])}
    if is_server:
        environment = {**start_settings(usual_database()), **environment}
    if context.args[:2] == ["worker", "start"]:
        environment = {**PATIENCE, **environment}
    sys.stdout.flush()
    # What a script puts into the background ignores SIGINT, which a worker that is told to end sends to itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execve(sys.executable, [sys.executable, "-P", "-c", _PREFECT, *context.args], environment)
