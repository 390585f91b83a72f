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
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.exceptions import ObjectNotFound, PrefectException
from prefect.settings import get_current_settings

from evalake.server.local.deployment import create_pool, deploy, pools_of

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Deploy all; returns the code of `prefect deploy`, else of the doctor. Exits with one line without a server."""
    url = get_current_settings().api.url
    if not url:
        sys.exit("deploy: no server is named; start one and export PREFECT_API_URL=http://127.0.0.1:4200/api")
    os.chdir(ROOT)
    with get_client(sync_client=True) as client:
        for pool in _missing_pools(client, url):
            create_pool(client, pool)
            print(f"created the work pool {pool}", flush=True)
        if code := deploy("--all"):
            return code
    return subprocess.run([sys.executable, "-m", "evalake.cli", "doctor", "--deploying"]).returncode


def _missing_pools(client: SyncPrefectClient, url: str) -> list[str]:
    if client.api_healthcheck() is not None:
        sys.exit(f"deploy: no Prefect server answers at {url}; start it, or correct PREFECT_API_URL")
    missing = []
    for pool in pools_of(ROOT):
        try:
            client.read_work_pool(pool)
        except ObjectNotFound:
            missing.append(pool)
        except (httpx.HTTPStatusError, PrefectException) as error:
            sys.exit(f"deploy: {url} refuses: {str(error).splitlines()[0]}; is PREFECT_API_AUTH_STRING right?")
    return missing


if __name__ == "__main__":
    sys.exit(main())
