"""Deploy all of prefect.yaml to the Prefect server that answers; creates the work pool first where it is missing.

Automations notify the receivers that are named of what goes wrong. At its end `evalake doctor` says whether the server
will run it all. Repeating it changes nothing. On Kubernetes create the pool beforehand, with the job template of this
folder: a pool that is there is left as it is.
"""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import yaml
from notify import notify
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.settings import get_current_settings

ROOT = Path(__file__).resolve().parents[1]
POOL_TYPE = "process"


def main() -> int:
    """Deploy all; returns the code of `prefect deploy`, else of the doctor. Exits with one line without a server."""
    url = get_current_settings().api.url
    if not url:
        sys.exit("deploy: no server is named; start one and export PREFECT_API_URL=http://127.0.0.1:4200/api")
    for pool in _missing_pools(url):
        _run("prefect", "work-pool", "create", pool, "--type", POOL_TYPE, check=True)
    if code := _run("prefect", "--no-prompt", "deploy", "--all"):
        return code
    with get_client(sync_client=True) as client:
        if receivers := notify(client):
            print(f"automations tell: {', '.join(receivers)}", flush=True)
    return _run("cli", "doctor", "--deploying")


def _missing_pools(url: str) -> list[str]:
    declared = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))["deployments"]
    missing = []
    with get_client(sync_client=True) as client:
        if client.api_healthcheck() is not None:
            sys.exit(f"deploy: no Prefect server answers at {url}; start it, or correct PREFECT_API_URL")
        for pool in sorted({deployment["work_pool"]["name"] for deployment in declared}):
            try:
                client.read_work_pool(pool)
            except ObjectNotFound:
                missing.append(pool)
            except (httpx.HTTPStatusError, PrefectException) as error:
                sys.exit(f"deploy: {url} refuses: {str(error).splitlines()[0]}; is PREFECT_API_AUTH_STRING right?")
    return missing


def _run(*module: str, check: bool = False) -> int:
    # Without EVALAKE_HOME, its placeholder stays in the deployments, and each worker puts its own folder there.
    environment = {name: value for name, value in os.environ.items() if name != "EVALAKE_HOME"}
    command = [sys.executable, "-m", *module]
    return subprocess.run(command, cwd=ROOT, env=environment, check=check).returncode


if __name__ == "__main__":
    sys.exit(main())
