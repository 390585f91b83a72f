"""The pages of `evalake up`, as a process: `evalake serve` at a socket that the supervisor has bound.

`python -m evalake.server.local.pages SOCKET PREFECT_SOCKET LAKE POOL…`; it also holds the socket of
the Prefect server that it asks. The supervisor starts workers of the pools once the pages are up.
"""

import sys

from evalake.core.errors import EvalakeError
from evalake.server.processes import follow_parent, inherited


def main(descriptor: str, prefect: str, lake: str, *pools: str) -> int:
    """Serve until told to stop, or until the parent ends; returns the exit code."""
    report_ready = follow_parent()
    try:
        from evalake.server.scoring.scorings import ScoringSettings  # this reads the configuration
        from evalake.server.server import serve_at

        settings = ScoringSettings.of_command(lake, None)
        settings.check()
        with inherited(descriptor) as listener, inherited(prefect):
            host = listener.getsockname()[0]
            serve_at(listener, host, settings, lambda _: report_ready(), workers_to_come=pools)
    except EvalakeError as error:
        sys.stderr.write(f"evalake: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
