"""The entry of the command: registers subcommands, and prints each error as one line with an exit code."""

import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

from evalake.cli import configuration, environment, trust
from evalake.cli.help import App, Group
from evalake.cli.terminal import INTERRUPTED, escape_unencodable, say_error, say_first_step
from evalake.core import phases
from evalake.core.errors import EvalakeError
from evalake.core.redaction import redact

MODULES = (
    "run", "cancel", "import_results", "init", "suite", "dataset", "trust", "rescore", "label", "calibrate", "roadmap",
    "fit_weights", "sql", "metrics", "compare", "gate", "settle", "explain", "power", "report", "runs", "snapshots",
    "tables", "maintain", "check", "forget", "doctor", "prefect", "export", "serve", "show", "view", "up", "watch",
)  # fmt: skip

# The help lists the commands under these titles, in this order.
SECTIONS = {
    "Every day": ("run", "watch", "cancel", "runs", "show", "view", "metrics", "report", "compare", "gate", "sql"),
    "Start": ("init", "suite", "dataset", "trust", "import", "export"),
    "Decide": ("settle", "explain", "power"),
    "People and judges": ("label", "calibrate", "fit-weights", "roadmap"),
    "Keep a lake": ("rescore", "snapshots", "tables", "check", "maintain", "forget"),
    "Operate": ("up", "status", "down", "doctor", "serve", "prefect"),
}


class Commands(Group):
    """All commands, under the titles of SECTIONS."""

    sections = SECTIONS


app = App(
    name="evalake",
    cls=Commands,
    help="LLM evaluation as a lakehouse pipeline.",
    epilog="`evalake run --help` lists the suites, with prompt types, baselines and examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evalake {version('evalake')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show how long each phase of a command takes.")] = False,
    trust_folder: Annotated[
        bool, typer.Option("--trust-folder", help="Let evalake.toml of this folder send keys and name code to run.")
    ] = False,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options before the command."""
    if verbose:
        context.with_resource(phases.printed(context.invoked_subcommand or ""))
    if trust_folder:
        configuration.trust_folder()
        trust.add_given()
    else:
        trust.meet_folder(context.invoked_subcommand or "")
    say_first_step(context.invoked_subcommand or "")


def main() -> None:
    """Run the command; exits with 0 on success, 1 on failure, 2 on wrong usage, 3 on something undecided."""
    try:
        environment.prepare()
        escape_unencodable()
        # Anywhere on the line, because people add them at the end
        general = [option for option in ("--debug", "--verbose", "--trust-folder") if option in sys.argv[1:]]
        sys.argv = [sys.argv[0], *general, *(word for word in sys.argv[1:] if word not in general)]
        if "--debug" in general:
            register()
            app()
        code = _run()
    except KeyboardInterrupt:  # before the command began
        code = INTERRUPTED
    _flush()
    sys.exit(code)


def _flush() -> None:
    """Flush the output. A closed pipe, like that of `head`, is not a failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run() -> int:

    try:
        register()
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # Typer exports no such name; its message is the help
            typer.echo(error.format_message(), err=True)
            return error.exit_code
        return _say(_wrong_usage(error), error.exit_code)
    except EvalakeError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except typer.Abort:  # Ctrl-C or Ctrl-D at a question
        return _say("the question was not answered, so nothing is done", INTERRUPTED)
    except SystemExit as ended:
        # A closed pipe, like that of `head`, is not a failure
        if isinstance(ended.__context__, BrokenPipeError):
            return 0
        return ended.code if isinstance(ended.code, int) else 1
    except Exception as error:  # noqa: BLE001 - users see no traceback
        return _say(f"unexpected {type(error).__name__}: {redact(str(error))[:300]} (--debug shows where)", 1)
    return code if isinstance(code, int) else 0


def _wrong_usage(error: typer.TyperException) -> str:
    """Describe the error in the command line, and name its help."""
    message = " ".join(error.format_message().split()).replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    of_run = any(each.param_type_name == "argument" and each.metavar == "RUN" for each in context.command.params)
    if of_run and getattr(error, "option_name", None) == "--model":
        message = "No such option: --model; RUN:MODEL names one model of a run"
    return f"{message} (`{context.command_path} -h` shows the help)" if message else message


def _say(message: str, code: int) -> int:
    if message:
        say_error(message)
    return code


def register() -> None:
    """Add all commands. A module without `register` has one command: the function of its name."""
    for name in MODULES:
        module = import_module(f"evalake.cli.{name}")
        if hasattr(module, "register"):
            module.register(app)
        else:
            app.command(name.replace("_", "-"))(getattr(module, name))
