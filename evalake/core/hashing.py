"""Content hashes: SHA-256 over canonical JSON, the one way evalake gives things an identity."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any, TypeVar, dataclass_transform

from evalake.core.errors import EvalakeError

# Encodes JSON with sorted keys, without spaces, escapes and NaN. `json.JSONEncoder` makes one anew for each value,
# which takes it a third of its time. Cycles are not looked for: a value that holds itself ends in a RecursionError.
_encode = c_make_encoder(None, json.JSONEncoder().default, encode_basestring, None, ":", ",", True, False, False)

_NO_FORM = "a value cannot be hashed because it has no canonical JSON form"


class NotCanonicalError(EvalakeError):
    """A value has no canonical JSON form (NaN, infinity, a lone surrogate, or a type JSON does not have)."""


def canonical_text(value: Any) -> str:
    """Write `value` as JSON with sorted keys, no spaces and no NaN, as `canonical_json` does; surrogates stay.

    Raises NotCanonicalError where JSON has no form for the value.
    """
    try:
        return "".join(_encode(value, 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise NotCanonicalError(f"{_NO_FORM}: {error}") from error


def canonical_json(value: Any) -> bytes:
    """Encode `value` as the one byte string that stands for it: JSON with sorted keys, no spaces, UTF-8, no NaN.

    The keys of mappings are strings. Raises NotCanonicalError where JSON has no form for the value.
    """
    try:
        return canonical_text(value).encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotCanonicalError(f"{_NO_FORM}: {error}") from error


def content_hash(value: Any) -> str:
    """Compute the SHA-256 of the canonical JSON of `value`, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def list_hash(values: Iterable[Any]) -> str:
    """Compute the `content_hash` of a list of these values, which are not held in memory together."""
    digest, before = hashlib.sha256(b"["), b""
    for value in values:
        digest.update(before + canonical_json(value))
        before = b","
    digest.update(b"]")
    return digest.hexdigest()


# Records: small objects of which a run makes millions, that the type checker keeps frozen.


T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a dataclass with slots that is compared by value, can be hashed, and is never changed.

    Nothing checks that at run time: a frozen dataclass takes Python six times as long to make.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
