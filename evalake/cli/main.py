"""The command's entry: registers every subcommand, and turns every error into one clear line and an exit code."""

import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

from evalake.cli import configuration, environment, trust
from evalake.cli.help import App
from evalake.cli.terminal import INTERRUPTED, say_error, say_what_is_done, write_anything

# In the order in which help lists their commands
MODULES = (
    "run", "import_results", "init", "suite", "trust", "rescore", "label", "calibrate", "roadmap", "fit_weights", "sql",
    "metrics", "compare", "gate", "settle", "explain", "power", "report", "runs", "snapshots", "tables", "maintain",
    "check", "forget", "doctor", "prefect", "export", "serve", "show", "view", "up",
)  # fmt: skip

app = App(
    name="evalake",
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
    trust_folder: Annotated[
        bool, typer.Option("--trust-folder", help="Let evalake.toml of this folder send keys and name code to run.")
    ] = False,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that stand before every command."""
    if trust_folder:
        configuration.trust_folder()
        trust.add_given()
    else:
        trust.meet_folder(context.invoked_subcommand or "")
    say_what_is_done(context.invoked_subcommand or "")


def main() -> None:
    """Run the command; 0 on success, 1 on a refused or failed job, 2 on wrong usage, 3 where a check is undecided."""
    try:
        environment.prepare()
        write_anything()
        # Wherever they stand on the line: people add them at the end of a command that failed.
        general = [option for option in ("--debug", "--trust-folder") if option in sys.argv[1:]]
        sys.argv = [sys.argv[0], *general, *(word for word in sys.argv[1:] if word not in general)]
        if "--debug" in general:
            register()
            app()
        code = _run()
    except KeyboardInterrupt:  # before the command itself began
        code = INTERRUPTED
    _flush()
    sys.exit(code)


def _flush() -> None:
    """Write what is buffered. A reader that has closed the pipe, like `head`, is no failure."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run() -> int:
    from evalake.core.errors import EvalakeError

    try:
        register()
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        return _say(_wrong_usage(error), error.exit_code)
    except EvalakeError as error:
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as ended:
        # The reader of the output, such as `head`, has closed the pipe: that is no failure.
        if isinstance(ended.__context__, BrokenPipeError):
            return 0
        return ended.code if isinstance(ended.code, int) else 1
    except Exception as error:  # noqa: BLE001 - the last line of defence between a user and a traceback
        from evalake.core.redaction import redact

        return _say(f"unexpected {type(error).__name__}: {redact(str(error))[:300]} (--debug shows where)", 1)
    return code if isinstance(code, int) else 0


def _wrong_usage(error: typer.TyperException) -> str:
    """Say what is wrong with the command line, and which help tells more; nothing where help itself was shown."""
    message = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    return f"{message} (`{context.command_path} -h` tells more)" if message and context is not None else message


def _say(message: str, code: int) -> int:
    if message:
        say_error(message)
    return code


def register() -> None:
    """Add all commands. Where a module has no `register`, its only command is the function that is named as it is."""
    for name in MODULES:
        module = import_module(f"evalake.cli.{name}")
        if hasattr(module, "register"):
            module.register(app)
        else:
            app.command(name.replace("_", "-"))(getattr(module, name))
