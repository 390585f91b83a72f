"""A flow run, as a worker starts it: `python -m cli.warm.flow_run FOLDER`, where FOLDER is that of its warm process."""

import os
import signal
import sys
from pathlib import Path

from cli.warm.client import carry_out

ENGINE = "prefect.engine"
PATIENCE_SECONDS = 120.0  # the first flow run waits for the imports


def main(folder: Path) -> int:
    """Have the warm process be this flow run; where there is none that is like this process, be it here.

    Returns:
        The exit code of Prefect's engine.
    """
    code = carry_out(folder, PATIENCE_SECONDS, when_gone=signal.SIGKILL)
    if code is None:
        os.execv(sys.executable, [sys.executable, "-m", ENGINE])
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
