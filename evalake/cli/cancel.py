"""`evalake cancel`: cancels the batch jobs of a run at their providers."""

from typing import Annotated

import typer

from evalake.cli.options import LAKE, ConfigOption, LakeOption
from evalake.core.errors import EvalakeError


def cancel(
    run: Annotated[str, typer.Argument(help="The run whose batch jobs are cancelled.", metavar="RUN")],
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
) -> None:
    """Cancel the batch jobs of a run; what they have answered is paid, and a later run collects it."""
    from evalake.cli import output as show
    from evalake.cli.configuration import read
    from evalake.storage.lake import Lake
    from evalake.tasks.jobs import cancel_jobs
    from evalake.tasks.runtime.context import RunContext
    from evalake.tasks.runtime.runs import run_row

    where = Lake(lake)
    suite = run_row(where, run)["suite"]
    cancelled = cancel_jobs(RunContext(run, suite, where, read(config)), run)
    if not cancelled:
        raise EvalakeError(f"the run {run} waits for no batch job")
    for job in cancelled:
        show.line(job.progress)
    if any(job.state not in ("cancelling", "closed") for job in cancelled):
        raise EvalakeError("some batch jobs were not cancelled: cancel the run again")
