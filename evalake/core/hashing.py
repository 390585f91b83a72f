"""Values as JSON has them, and content hashes: SHA-256 over canonical JSON, the identity of all objects."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform

from evalake.core.errors import EvalakeError

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

_NO_FORM = "a value cannot be hashed because it has no canonical JSON form"


class NotCanonicalError(EvalakeError):
    """A value has no canonical JSON form (NaN, infinity, a lone surrogate, or a type JSON does not have)."""


def canonical_text(value: Any) -> str:
    """Write `value` as canonical JSON text, keeping lone surrogates. Raises NotCanonicalError without a form."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotCanonicalError(f"{_NO_FORM}: {error}") from error


def canonical_json(value: Any) -> bytes:
    """Encode `value` as canonical JSON: sorted string keys, no spaces, UTF-8, no NaN.

    Raises NotCanonicalError for values without such a form.
    """
    return as_utf8(canonical_text(value))


def as_utf8(text: str) -> bytes:
    """Encode canonical JSON text. Raises NotCanonicalError for a lone surrogate."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotCanonicalError(f"{_NO_FORM}: {error}") from error


def plain(value: Any) -> Any:
    """Convert a value to JSON's types; NaN and infinities become None."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return value if value - value == 0 else None
    if value is None or isinstance(value, str | int | bool):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def content_hash(value: Any) -> str:
    """Compute the SHA-256 of `value` in canonical JSON, as 64 lower-case hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def short_hash(text: str) -> str:
    """Compute the first 16 digits of the SHA-256 of a text, which may be no valid Unicode."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def list_hash(values: Iterable[Any]) -> str:
    """Compute the `content_hash` of a list, one value at a time."""
    digest, before = hashlib.sha256(b"["), b""
    for value in values:
        digest.update(before + canonical_json(value))
        before = b","
    digest.update(b"]")
    return digest.hexdigest()


T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a hashable dataclass with slots that type checkers treat as frozen.

    A run makes millions of them, and a frozen dataclass takes six times as long to make.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
