"""Keeps keys out of messages and logs: known key variables by value, everything else by shape."""

import logging
import os
import re

REDACTED = "[redacted]"

_KEY_VARIABLE = re.compile(
    r"(?:API_?KEY|ACCESS_KEY(?:_ID)?|SECRET(?:_KEY)?|TOKEN|PASSWORD|CREDENTIALS?)$", re.IGNORECASE
)
_SHORTEST_KEY = 8  # a shorter value would redact innocent words

# Each shape keeps what its groups matched (the words before the key) and drops the rest. All run in linear time.
_SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        r"(\b(?:bearer|basic)\s{1,4})[\w.~+/=-]{6,}",
        r"((?:x-api-key|api[-_ ]key|apikey|authorization|x-goog-api-key|access[-_]token)[\"']?\s{0,4}[:=]\s{0,4}[\"']?)"
        r"(?!bearer\b|basic\b)[^\s\"',;&}]{4,}",
        r"([?&](?:key|token|sig|signature)=)[^\s&\"']{4,}",
        r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/@:]{0,256}:[^\s/@]{1,256}@",
        r"()\b(?:sk|pk|rk|gsk|xai|hf|pplx|nvapi|r8|csk|fw)[-_][A-Za-z0-9*_-]{8,}",
        r"()\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
        r"()\bAIza[\w-]{20,}",
        r"()\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"()\beyJ[\w-]{8,2000}\.[\w-]{8,4000}\.[\w-]*",
    )
)


_named_variables: set[str] = set()


def treat_as_key(variable: str) -> None:
    """Redact the value of this environment variable, whatever its name looks like."""
    _named_variables.add(variable)


def redact(text: str) -> str:
    """`text` without API keys: neither values of the environment's key variables nor anything shaped like a key."""
    for value in _environment_keys():
        text = text.replace(value, REDACTED)
    for shape in _SHAPES:
        text = shape.sub(rf"\1{REDACTED}", text)
    return text


def _environment_keys() -> list[str]:
    """The values of key variables, longest first, so that none leaves a part of another."""
    values = {
        value.strip()
        for name, value in os.environ.items()
        if (name in _named_variables or _KEY_VARIABLE.search(name)) and len(value.strip()) >= _SHORTEST_KEY
    }
    return sorted(values, key=len, reverse=True)


class RedactionFilter(logging.Filter):
    """Redacts the whole text of each record, its arguments and its traceback included; drops none."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True; the record is changed in place."""
        record.msg, record.args = redact(record.getMessage()), None
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
        return True
