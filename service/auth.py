"""Who is asking: a user named by a trusted proxy, a bearer of the token, or anybody where the service is open."""

import base64
import hmac
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address

from starlette.requests import HTTPConnection

from service.errors import NotAllowedError
from service.settings import NOBODY_IN_PARTICULAR, Settings

SUBPROTOCOL = "evalake"
LONGEST_NAME = 320

_BEARER = "bearer."


def who(connection: HTTPConnection, settings: Settings) -> str:
    """Name the user of a request. Raises NotAllowedError where neither a trusted proxy nor the token tells who asks."""
    if settings.is_open:
        return NOBODY_IN_PARTICULAR
    if _is_trusted(connection, settings) and (name := _named(connection, settings)):
        return name
    if settings.token is not None and any(_same(token, settings.token) for token in _tokens(connection)):
        return NOBODY_IN_PARTICULAR
    raise NotAllowedError("not allowed: come by way of a trusted proxy, or with the token (Authorization: Bearer …)")


def subprotocol(connection: HTTPConnection) -> str | None:
    """Choose the subprotocol for a WebSocket; None where ours was not offered."""
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


def _named(connection: HTTPConnection, settings: Settings) -> str:
    """Read the user that a trusted proxy names; empty where it names none, or there are two names, one a client's."""
    headers = connection.headers.getlist(settings.configuration.service.user_header)
    return _name(headers[0]) if len(headers) == 1 else ""


def _name(header: str) -> str:
    """Decode the name of a user from a header, without characters that cannot be shown."""
    return "".join(letter for letter in _text(header) if letter.isprintable()).strip()[:LONGEST_NAME]


def _text(header: str) -> str:
    """Decode a header's text as UTF-8; where it is not UTF-8, it stays as it was decoded (Latin-1)."""
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
