"""Who asked what: calls counted at the model server by the process that made them, and rows counted in the lake."""

from evalake.contracts.tables import CALLS
from evalake.storage.ledger import KEY
from evalake.suites.command_guard.contract import RESULTS
from tests.integration.flows.workplace import Workplace
from tests.servers.model_server import Seen

KEY_VARIABLE = "GUARD_KEY"  # each process has a value of its own
_PREFIX = "Bearer key-of-"


def key_of(name: str) -> dict[str, str]:
    """The environment of a process whose calls are to be told apart."""
    return {KEY_VARIABLE: f"key-of-{name}"}


def asker(request: Seen) -> str:
    """The name of the process that made the request."""
    assert request.authorization is not None
    assert request.authorization.startswith(_PREFIX)
    return request.authorization.removeprefix(_PREFIX)


def committed_by(work: Workplace, name: str) -> set[str]:
    """The requests that a process made and whose replies are in the ledger."""
    asked = {request.content for request in work.server.requests() if asker(request) == name}
    return asked & work.committed() if asked else set()


def are_there_once(work: Workplace, items: int) -> bool:
    """Whether every item has one row of results and one reply."""
    results, calls = work.rows(RESULTS), work.rows(CALLS)
    distinct = results.select(*RESULTS.key).unique().height, calls.select(KEY).unique().height
    return (results.height, calls.height) == distinct == (items, items)
