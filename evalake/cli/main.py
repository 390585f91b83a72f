"""The entry of the command: lists subcommands, and prints each error as one line with an exit code."""

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer._click.shell_completion import CompletionItem

from evalake.cli import terminal
from evalake.cli.help import App, Group
from evalake.cli.terminal import INTERRUPTED, escape_unencodable, say_error, say_first_step
from evalake.core import phases
from evalake.core.errors import EvalakeError
from evalake.core.redaction import redact

# The help lists the commands under these titles, in this order, each with the first sentence of its own help.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Every day": {
        "run": "Evaluate models on a suite; the ledger answers known calls.",
        "watch": "Show how far a run is: answered, failed and left by model, cost, rate and time left; until it ends.",
        "cancel": "Cancel the batch jobs of a run; the provider bills finished answers, and a later run collects them.",
        "runs": "List the runs, newest first.",
        "show": "List a run's samples with each model's verdict; or print one: input, truth, conversation, judgements.",
        "view": "Serve pages of runs and samples until interrupted, read-only without --write; or export one run.",
        "metrics": "Print the metrics of a snapshot; without options, the headline metrics of the newest.",
        "report": "Print a run's summary and write its report: HTML with plots, and JSON.",
        "compare": "Compare A with B: A - B in every metric, with interval, p values, and flipped answers.",
        "gate": "Check a run against rules; each model must pass each rule with each judge.",
        "sql": "Run a query in DuckDB's SQL over the tables and views.",
    },
    "Start": {
        "init": "Write a project: settings, deployments, a Makefile, and a first suite.",
        "suite": "Write a suite as a file, and check one.",
        "dataset": "Look at a dataset before anything is asked.",
        "trust": "Trust a folder: its evalake.toml and its suites may run as you, until one of its files changes.",
        "import": "Import results, of another tool or recorded: scored, audited, measured like a run, without a call.",
        "export": "Write the data contracts of all tables, or the results of a run for other tools.",
    },
    "Decide": {
        "settle": "Buy samples in rounds until every rule is decided, the budget is used up, or no sample is left.",
        "explain": "Split A - B into samples, replies, judge, code and repeats; the parts sum up to it.",
        "power": "Plan samples and repeats from the variance in the lake's newest run of two models.",
    },
    "People and judges": {
        "label": "Have people label results: export a sheet, fill it in, import it.",
        "calibrate": "Measure judges on items of known judgement; the ledger answers known calls.",
        "fit-weights": "Fit the weights of a suite's index to a human ranking, and print the limits of the result.",
        "roadmap": "Group the gaps of scored results, like missing tools, and rank them by lost points.",
    },
    "Keep a lake": {
        "rescore": "Derive a run's rows and snapshot again from the ledger, by the present rules.",
        "snapshots": "List the snapshots, newest first; or verify one.",
        "tables": "List the tables, most recently changed first; or describe their columns.",
        "check": "Check every table against its contract, log, files and keys, and recompute every snapshot.",
        "maintain": "Compact small files, write checkpoints, remove unneeded and expired files; or migrate a lake.",
        "forget": "Remove samples and all data derived from them from the lake, and refuse them in later imports.",
    },
    "Operate": {
        "up": "Start a Prefect server, workers and the pages in the background.",
        "status": "Print the servers of `evalake up` with addresses and passwords, and the lake's open batch jobs.",
        "down": "End the servers of `evalake up`.",
        "doctor": "Check what evaluations need of this machine, and schedules of a Prefect server and its workers.",
        "serve": "Serve the scoring API and the dashboard, until interrupted.",
        "prefect": "Run Prefect's own command, like `worker start`, without settings of this folder.",
    },
}
COMMANDS = {name: text for commands in SECTIONS.values() for name, text in commands.items()}

# The commands of a module in this folder beside that of its name.
CHAPTERS = {
    "runs": ("show", "watch", "cancel", "rescore", "snapshots"),
    "metrics": ("report",),
    "decide": ("compare", "explain", "power", "gate", "settle"),
    "suite": ("init", "dataset"),
    "configuration": ("trust",),
    "exchange": ("import", "export"),
    "label": ("calibrate", "fit-weights", "roadmap"),
    "lake": ("tables", "check", "maintain", "forget"),
    "up": ("status", "down", "doctor"),
    "serve": ("view", "prefect"),
}


class Chapters(Mapping[str, Any]):
    """The commands by name. Looking one up imports its chapter, so that a command imports no other's libraries."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        chapter = next((each for each, names in CHAPTERS.items() if name in names), name)
        return typer.main.get_group(import_module(f"evalake.cli.{chapter}").app).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(Group):
    """All commands, under the titles of SECTIONS."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Chapters()

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names of the commands, without an import."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands of each section, names in one column."""
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<11}", text) for name, text in commands.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """List the commands that begin so, without an import; or the options before a command."""
        matching = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return matching or super().shell_complete(ctx, incomplete)


app = App(
    name="evalake",
    cls=Commands,
    help="LLM evaluation as a lakehouse pipeline.",
    epilog="`evalake run --help` lists the suites, with prompt types, baselines and examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

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
    from evalake.cli import configuration

    if verbose:
        context.with_resource(phases.printed(context.invoked_subcommand or ""))
    if trust_folder:
        configuration.trust_folder()
        configuration.add_given()
    else:
        configuration.meet_folder(context.invoked_subcommand or "")
    say_first_step(context.invoked_subcommand or "")


def main() -> None:
    """Run the command; exits with 0 on success, 1 on failure, 2 on wrong usage, 3 on something undecided."""
    try:
        terminal.prepare()
        escape_unencodable()
        # Anywhere on the line, because people add them at the end
        general = [option for option in ("--debug", "--verbose", "--trust-folder") if option in sys.argv[1:]]
        sys.argv = [sys.argv[0], *general, *(word for word in sys.argv[1:] if word not in general)]
        if "--debug" in general:
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
