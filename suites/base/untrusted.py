"""Delimit text of strangers inside a prompt, marked so that nothing in it can end the mark or imitate another.

The delimiters of a block carry a nonce derived from the block's own content:

    <<<audit 3c1f…>>>
    whatever the content says
    <<<end audit 3c1f…>>>

Who writes the content cannot write its end: putting a nonce into the content changes the content, and so the nonce.
Delimiters with another nonce inside a block are content. Readers take the first block of a name, so whoever builds a
prompt puts blocks in an order in which no stranger's text stands before one that is trusted more.
"""

import hashlib
import hmac
import re
from itertools import count

ANY_FENCE = "0" * 32
"""As long as every fence is, where only the length of a prompt matters."""

_NAME = re.compile(r"[a-z_]{1,40}")


def fence(content: str, secret: bytes = b"") -> str:
    """Compute 128 bits of HMAC-SHA256 over the content, in hexadecimal digits: only who writes a prompt knows it.

    The same content has the same fence. Without a secret, as where there is no lake, anybody can compute it.
    """
    return hmac.new(secret, content.encode("utf-8", "surrogatepass"), "sha256").hexdigest()[:32]


def delimit_untrusted(name: str, content: str) -> str:
    """Write the content as a block of its own lines. Raises ValueError for a name that is not lower-case letters."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a block cannot be called {name!r}")
    mark = nonce(name, content)
    return f"<<<{name} {mark}>>>\n{content}\n<<<end {name} {mark}>>>"


def nonce(name: str, content: str) -> str:
    """Compute 32 hexadecimal digits that follow from the content, and do not occur in it."""
    marks = (_digest(name, content, rounds) for rounds in count())
    return next(mark for mark in marks if mark not in content)  # nobody has found a content that holds the first


def _digest(name: str, content: str, rounds: int) -> str:
    data = f"{name}\n{rounds}\n{content}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:32]


def read_delimited(name: str, text: str) -> str | None:
    """Read the content of the first block called `name`, whole, as its nonce proves; None where there is none."""
    opening = re.search(rf"^<<<{name} ([0-9a-f]{{32}})>>>\n", text, re.MULTILINE)
    if opening is None:
        return None
    end = text.find(f"\n<<<end {name} {opening[1]}>>>", opening.end() - 1)
    if end < 0:
        return None
    content = text[opening.end() : end] if end >= opening.end() else ""
    return content if nonce(name, content) == opening[1] else None
