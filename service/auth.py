"""Who is asking: a user named by a trusted proxy, a bearer of the token, or anybody where the service is open."""

import base64
import hmac
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from service.errors import NotAllowedError
from service.settings import NOBODY_IN_PARTICULAR, Settings

SUBPROTOCOL = "evalake"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
LONGEST_NAME = 320
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")

_BEARER = "bearer."


def who(connection: HTTPConnection, settings: Settings) -> str:
    """The name of who is asking. Raises NotAllowedError where it may not be told, or is nobody's."""
    is_proxy = _is_trusted(connection, settings)
    _refuse_other_sites(connection, is_proxy=is_proxy)
    if settings.is_open:
        # A page of another site could reach a loopback address by a name of its own that points there.
        if not _is_loopback(connection.headers.get("host", "")):
            raise NotAllowedError("without a token the service answers only to a loopback address")
        return NOBODY_IN_PARTICULAR
    if is_proxy:
        for header in ("x-forwarded-user", "x-forwarded-email"):
            if name := _name(connection.headers.get(header, "")):
                return name
    if settings.token is not None and any(_same(token, settings.token) for token in _tokens(connection)):
        return NOBODY_IN_PARTICULAR
    raise NotAllowedError("not allowed: come by way of a trusted proxy, or with the token (Authorization: Bearer …)")


def subprotocol(connection: HTTPConnection) -> str | None:
    """The subprotocol to choose for a WebSocket; None where none was offered."""
    return SUBPROTOCOL if SUBPROTOCOL in _offered(connection) else None


def _is_trusted(connection: HTTPConnection, settings: Settings) -> bool:
    if connection.client is None:
        return False
    try:
        peer = ip_address(connection.client.host)
    except ValueError:
        return False
    peer = getattr(peer, "ipv4_mapped", None) or peer
    return any(peer in network for network in settings.configuration.service.trusted_proxies)


def _is_loopback(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in LOOPBACK_NAMES
    except ValueError:  # such as half a pair of brackets
        return False


def _refuse_other_sites(connection: HTTPConnection, *, is_proxy: bool) -> None:
    """A browser says which site's page asks: pages of other sites may neither start scorings nor listen."""
    origin = connection.headers.get("origin")
    if origin is None or (connection.scope["type"] == "http" and connection.scope["method"] in SAFE_METHODS):
        return
    hosts = {connection.headers.get("host")}
    if is_proxy:
        hosts.add(connection.headers.get("x-forwarded-host"))
    try:
        asking = urlsplit(origin).netloc
    except ValueError:
        asking = ""
    if not asking or asking not in hosts:
        raise NotAllowedError("not allowed: a page of another site asks")


def _name(header: str) -> str:
    """A name as a header gives it, without what cannot be shown."""
    return "".join(letter for letter in _text(header) if letter.isprintable()).strip()[:LONGEST_NAME]


def _text(header: str) -> str:
    """A header's text: as UTF-8 where it is, and as it was decoded (Latin-1) where it is not."""
    with suppress(UnicodeError):
        return header.encode("latin-1").decode("utf-8")
    return header


def _tokens(connection: HTTPConnection) -> Iterable[str]:
    kind, _, token = _text(connection.headers.get("authorization", "")).partition(" ")
    if kind.lower() == "bearer":
        yield token.strip()
    for offered in _offered(connection):
        if offered.startswith(_BEARER):
            encoded = offered.removeprefix(_BEARER)
            try:
                yield base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("utf-8")
            except ValueError:
                continue


def _offered(connection: HTTPConnection) -> list[str]:
    return [part.strip() for part in connection.headers.get("sec-websocket-protocol", "").split(",")]


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode("utf-8"))
