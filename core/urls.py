"""Passwords in URLs: they are refused wherever the URL would be kept, which a flow's parameters always are."""

import re

from core.errors import UsageError


def _any_case(*words: str) -> str:
    """Build a pattern of one of these words in any case; JSON schemas have no other way to say so."""
    return re.sub(r"[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", "|".join(words))


_SECRETS = _any_case(
    "pass", "passwd", "password", "passphrase", "pwd", "secret", "token", "sig", "signature", "credential"
)
_KEYS = _any_case("access[-_]?key", "account[-_]?key", "api[-_]?key")
_ALONE = _any_case("auth", "code", "jwt", "key", "sas")  # words that are parts of innocent ones

# With bounds, so that no text takes long
_USER_AND_PASSWORD = r"://[^/?#:]{0,256}:[\s\S]{0,1024}@"
_TOKEN_AS_USER = rf"(?:{_any_case('https?')})://[^/?#@]{{0,1024}}@"
_PARAMETER = rf"[?&;#](?:[^?=&;#]{{0,64}}(?:{_SECRETS}|{_KEYS})|{_ALONE})="

NO_PASSWORD = rf"^(?![\s\S]*{_USER_AND_PASSWORD})(?![\s\S]*{_TOKEN_AS_USER})(?![\s\S]*{_PARAMETER})"
"""The pattern of texts without a URL that holds a password, in a syntax that Python and JSON schemas share."""

_ALLOWED = re.compile(NO_PASSWORD)


def has_password(text: str) -> bool:
    """Tell whether there is a URL with a password, a token or a signature in the text."""
    return _ALLOWED.match(text) is None


def require_no_password(what: str, url: str, instead: str) -> None:
    """Raise UsageError, which does not show the URL, where it holds a password.

    Args:
        what: What the URL was given as.
        url: What was given.
        instead: What to do.
    """
    if has_password(url):
        scheme = url.partition("://")[0][:20]
        raise UsageError(f"{what} ({scheme}://…) holds a password, which would be kept in the clear: {instead}")
