"""Passwords in URLs: they are refused wherever the URL would be kept, which a flow's parameters always are."""

import re

from core.errors import UsageError

_SECRETS = "pass(?:wd|word|phrase)?|pwd|secret|token|sig(?:nature)?|credential|(?:access|account|api)[-_]?key"
_ALONE = "auth|code|jwt|key|sas"  # words that are parts of innocent ones

# With bounds, so that no text takes long
_USER_AND_PASSWORD = r"://[^/?#:]{0,256}:[\s\S]{0,1024}@"
_TOKEN_AS_USER = r"https?://[^/?#@]{0,1024}@"
_PARAMETER = rf"[?&;#](?:[^?=&;#]{{0,64}}(?:{_SECRETS})|{_ALONE})="

NO_PASSWORD = rf"^(?![\s\S]*(?i:{_USER_AND_PASSWORD}|{_TOKEN_AS_USER}|{_PARAMETER}))"
"""The pattern of texts without a URL that holds a password, as Prefect's server checks what forms send."""

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
