"""`evalake up`, `down`, `status` and `doctor`: a lake's servers in the background, and what evaluations need."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import polars as pl
import typer

from evalake.cli import options
from evalake.cli import output as show
from evalake.cli.configuration import read
from evalake.cli.help import App
from evalake.cli.terminal import say
from evalake.core.configuration import FILE_VARIABLE, whole_address
from evalake.core.errors import EvalakeError
from evalake.core.files import open_private
from evalake.server.local import supervisor as servers

app = App()


LOG_LEVEL = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
CHECKOUT = Path(__file__).resolve().parents[2]
DEPLOYMENTS, LOG = "prefect.yaml", "up.log"
REFUSAL = "evalake: "  # begins the line with the reason for which the supervisor ends
END_SECONDS = 30.0


@app.command("up")
def up(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the web pages; 0 picks a free one.", metavar="PORT")
    ] = 0,
    workers: Annotated[
        bool, typer.Option(help="Deploy prefect.yaml of this folder, and start the workers of its pools.")
    ] = True,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Start a Prefect server, workers and the pages in the background."""
    if servers.find(lake) is None:
        _require_none_is_lost(lake)
        read(None)
        options.require_lake(lake)
        if (project := folder_to_deploy(Path.cwd()) if workers else None) is not None:
            from evalake.server.local.deployment import require_suites

            require_suites(project)
        _start(lake, port, project)
    elif workers and Path(DEPLOYMENTS).exists():
        say(f"the servers run already: {DEPLOYMENTS} is deployed by `evalake down` and then `evalake up`")
    _show(lake, as_json=json)


@app.command("down")
def down(lake: options.Lake = options.LAKE) -> None:
    """End the servers of `evalake up`. Running runs end, and a rerun asks only for what is missing."""
    if (background := servers.find(lake)) is None:
        if servers.is_running(lake):
            raise EvalakeError("the servers are still starting: try again in a moment")
        _require_none_is_lost(lake)
        say(f"nothing runs in the background for {whole_address(lake)}")
        return
    say("ending …")
    os.kill(background.pid, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while servers.is_running(lake):
        if time.monotonic() > deadline:
            raise EvalakeError(f"process {background.pid} did not end within {END_SECONDS:g} seconds")
        time.sleep(0.1)
    say("ended")


@app.command("status")
def status(lake: options.Lake = options.LAKE, json: options.Json = False) -> None:
    """Print the servers of `evalake up` with addresses and passwords, and the lake's open batch jobs."""
    _show(lake, as_json=json)


def _start(lake: str, port: int, project: Path | None) -> None:
    """Start the supervisor, and print its messages until all servers are up."""
    folder = servers.make_folder_of(lake)
    # Servers and workers write to their log only
    unwanted = (servers.ADDRESS, LOG_LEVEL)
    arguments = [whole_address(lake), str(port), str(project or "")]
    with open_private(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-P", "-m", servers.MODULE, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={name: value for name, value in os.environ.items() if name not in unwanted},
            text=True,
            start_new_session=True,  # so that Ctrl-C and the end of the terminal do not reach it
        )
    stripped = ""
    assert supervisor.stdout is not None
    with supervisor.stdout as said:
        for line in said:
            if (stripped := line.strip()) == servers.READY:
                return
            if not stripped.startswith(REFUSAL):
                say(stripped)
    supervisor.wait()
    raise EvalakeError(stripped.removeprefix(REFUSAL) or f"the supervisor ended at once: see {folder / LOG}")


def _require_none_is_lost(lake: str) -> None:
    """Raise EvalakeError where servers of the lake run whose state folder is lost."""
    if not servers.is_running(lake) and (pid := servers.lost_supervisor(lake)) is not None:
        raise EvalakeError(
            f"process {pid} keeps servers of {whole_address(lake)}, and their state folder is lost or elsewhere: "
            f"end them by `kill {pid}`, then start again"
        )


def folder_to_deploy(here: Path) -> Path | None:
    """Find the folder of prefect.yaml: evalake's own checkout, or a folder whose settings the user has named.

    Deploying executes the file, so it must be trusted. Where nothing is deployed, the reason is printed.
    """
    if not (here / DEPLOYMENTS).is_file():
        say(
            f"nothing is deployed, since this folder has no {DEPLOYMENTS}: for schedules, `evalake init DIR` writes "
            "a project; then `evalake up` there"
        )
        return None
    named = os.environ.get(FILE_VARIABLE)
    if here == CHECKOUT or (named and Path(named).resolve().parent == here):
        return here
    say(f"{DEPLOYMENTS} of this folder is not deployed: add --trust-folder if it is yours")
    return None


def _show(lake: str, *, as_json: bool) -> None:
    """Print the addresses. Raises EvalakeError where no server runs."""
    jobs = _jobs(lake)
    if (background := servers.find(lake)) is None:
        _require_none_is_lost(lake)
        for job in jobs:
            typer.echo(f"job      {job}")
        raise EvalakeError(f"nothing runs in the background for {whole_address(lake)}: evalake up")
    addresses = {"pages": f"{background.pages}/", "prefect": f"{background.prefect}/health"}
    answers = {name: _answers(address) for name, address in addresses.items()}
    log = str(servers.folder_of(lake) / LOG)
    if as_json:
        show.as_json({**asdict(background), "log": log, "answers": answers, "jobs": jobs})
        return
    silent = {name: "" if answer else "  (does not answer)" for name, answer in answers.items()}
    typer.echo(f"lake     {background.lake}")
    typer.echo(f"pages    {background.link}{silent['pages']}")
    typer.echo(f"Prefect  {background.prefect_pages}{silent['prefect']}")
    typer.echo(f"         password {background.password} (whole, with the name before the colon)")
    typer.echo(f"workers  {', '.join(background.pools) or 'none: nothing is deployed'}")
    typer.echo(f"log      {log}")
    for job in jobs:
        typer.echo(f"job      {job}")
    say("Every command with this lake uses these servers, `evalake prefect …` included; `evalake down` ends them.")


def _jobs(lake: str) -> list[str]:
    """Describe the open batch jobs of a lake."""
    from evalake.contracts.tables import BATCH_JOBS
    from evalake.storage.batch_jobs import OPEN, jobs

    where = options.open_lake(lake)
    return [job.progress for job in jobs(where, pl.col("state").is_in(OPEN))] if where.exists(BATCH_JOBS) else []


def _answers(address: str) -> bool:
    import httpx

    try:
        return httpx.get(address, timeout=5, trust_env=False).status_code < HTTPStatus.INTERNAL_SERVER_ERROR
    except httpx.HTTPError:
        return False


INDENT = " " * 25  # aligns with the messages
MACHINE, DEPLOYMENT = "this machine", "the deployment"
NEEDED = {MACHINE: "every evaluation needs this, on a laptop, too", DEPLOYMENT: "schedules need this as well"}


@app.command("doctor")
def doctor(
    config: options.Config = None,
    deploying: Annotated[
        bool,
        typer.Option("--deploying", help="Check the server before its workers start; silent workers are a hint."),
    ] = False,
    lake: options.Lake = options.LAKE,
    json: options.Json = False,
) -> None:
    """Check what evaluations need of this machine, and schedules of a Prefect server and its workers."""
    from evalake.admin.doctor import FIRST_MINUTE, Level, Place, examine

    place = Place(options.open_lake(lake), read(config), deploying, servers.are_new(lake, FIRST_MINUTE.total_seconds()))
    checks: list[dict[str, Any]] = []
    for check, result in examine(place):
        part = DEPLOYMENT if check.of_server else MACHINE
        if not json:
            if all(each["of"] != part for each in checks):
                show.line(f"{part.capitalize()}: {NEEDED[part]}")
            mend = f"; {result.mend}" if result.mend else ""
            text = f"{result.level:<8} {check.name:<15} {result.message}{mend}"
            for line in wrap(text, show.width(), subsequent_indent=INDENT, break_on_hyphens=False):
                show.line(line)
        told = {"check": check.name, "of": part, "level": result.level, "message": result.message}
        checks.append({**told, "mend": result.mend})
    healthy = all(each["level"] != Level.PROBLEM for each in checks)
    show.json_or_line({"healthy": healthy, "checks": checks}, _conclusion(checks), as_json=json)
    if not healthy:
        raise typer.Exit(1)


def _conclusion(checks: Sequence[Mapping[str, str]]) -> str:
    """Say what works, and which checks tell of a problem."""
    told = []
    for part, works in ((MACHINE, "evaluations can run on this machine"), (DEPLOYMENT, "schedules can run")):
        ours = [each for each in checks if each["of"] == part]
        wrong = [each["check"] for each in ours if each["level"] == "problem"]
        if wrong:
            told.append(f"{part} has problems: {', '.join(wrong)}")
        elif len(ours) > 1:
            told.append(works)
        elif ours:
            told.append("nothing is scheduled")
    return "; ".join(told)
