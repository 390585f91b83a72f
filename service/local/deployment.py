"""Deploys a project to a Prefect server that is just starting: `python -m service.local.deployment PROJECT`.

It runs beside the server's start, and imports Prefect meanwhile; a line on standard input says that the server answers.
"""

import sys
from pathlib import Path

import yaml


def pools_of(project: Path) -> tuple[str, ...]:
    """List the work pools that the deployments of a project's prefect.yaml name."""
    declared = yaml.safe_load((project / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    return tuple(sorted({deployment["work_pool"]["name"] for deployment in declared}))


def main(project: Path) -> int:
    """Create the project's work pools, and deploy all of its prefect.yaml.

    Returns:
        The exit code of `prefect deploy`; 1 where standard input ended instead, with the process that asked for this.
    """
    import prefect.cli.deploy  # noqa: F401 - which the command would import only when the server is there
    from prefect.cli import app
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.workers.process import ProcessWorker

    if not sys.stdin.readline():
        return 1
    template = ProcessWorker.get_default_base_job_template()
    with get_client(sync_client=True) as client:
        for pool in pools_of(project):
            work_pool = WorkPoolCreate(name=pool, type=ProcessWorker.type, base_job_template=template)
            client.create_work_pool(work_pool, overwrite=True)
    sys.argv = ["prefect", "--no-prompt", "deploy", "--all"]
    app()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
