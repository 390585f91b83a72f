"""Where the viewer shows what a report tells: `evalake view` on this machine, unless another address is named."""

import os
from urllib.parse import quote, urlencode

VIEWER_URL = "EVALAKE_VIEWER_URL"  # where `evalake view` or `evalake serve` answers
DEFAULT_PORT = 8601  # of `evalake view`


def viewer_address() -> str:
    """Look up the address of the viewer, without a slash at its end."""
    return (os.environ.get(VIEWER_URL) or f"http://127.0.0.1:{DEFAULT_PORT}").rstrip("/")


def run_address(run_id: str) -> str:
    """Build the address of a run's page."""
    return f"{viewer_address()}/runs/{quote(run_id, safe='')}"


def items_address(run_id: str, **filters: str | None) -> str:
    """Build the address of a run's items under these filters; filters that are None are left out."""
    wanted = urlencode({name: value for name, value in filters.items() if value is not None}, errors="replace")
    return f"{run_address(run_id)}/items" + (f"?{wanted}" if wanted else "")


def item_address(run_id: str, sample_hash: str) -> str:
    """Build the address of one item of a run."""
    return f"{items_address(run_id)}/{quote(sample_hash, safe='')}"
