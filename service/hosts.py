"""The names by which the service may be addressed. A name that another site points here is none of them."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from service.errors import NotAllowedError, WrongHostError

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
EVERY_ADDRESS = ("0.0.0.0", "::")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class Hosts:
    """The loopback names, the address that the service listens on, and the names of the configuration."""

    def __init__(self, bound: str, allowed: tuple[str, ...]) -> None:
        self._configured = {name.lower() for name in allowed}
        self._names = self._configured | {*LOOPBACK_NAMES, bound.lower()}
        self._any_address = bound in EVERY_ADDRESS

    def require_ours(self, connection: HTTPConnection) -> None:
        """Raise WrongHostError where a request is addressed to a name that is not the service's.

        A page of another site can have its own name point to this machine (DNS rebinding), and could then read answers.
        """
        asked = connection.headers.getlist("host")
        host = _hostname(asked[0]) if len(asked) == 1 else None
        if host is None or not (host in self._names or (self._any_address and _is_address(host))):
            raise WrongHostError(
                f"the service does not answer to the host {', '.join(asked)[:200]!r}: name it in [service] "
                "allowed_hosts of evalake.toml, if it is the service's"
            )

    def require_own_page(self, connection: HTTPConnection) -> None:
        """Raise NotAllowedError where a page of another site would start something, or open a WebSocket."""
        origins = connection.headers.getlist("origin")
        if not origins or (connection.scope["type"] == "http" and connection.scope["method"] in SAFE_METHODS):
            return
        place = origins[0].partition("://")[2]
        is_ours = place == connection.headers.get("host") or _hostname(place) in self._configured
        if len(origins) > 1 or not place or not is_ours:
            raise NotAllowedError("not allowed: a page of another site asks")


def _hostname(place: str) -> str | None:
    """Read the host out of `host:port`; None where there is none."""
    if "@" in place:  # a user is no part of a host
        return None
    try:
        return urlsplit(f"//{place}").hostname
    except ValueError:  # such as half a pair of brackets
        return None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
