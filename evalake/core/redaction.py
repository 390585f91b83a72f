"""Removes keys, passwords and unsafe characters from texts: messages, replies, logs, sheets and terminals."""

import logging
import os
import re
from urllib.parse import quote, quote_plus

from evalake.core.errors import UsageError

REDACTED = "[redacted]"

_KEY_VARIABLE = re.compile(
    r"(?:API_?KEY|(?:ACCESS|ACCOUNT|STORAGE)_KEY(?:_ID)?|SECRET(?:_KEY)?|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?"
    r"|AUTH_STRING|CONNECTION_STRING)$",
    re.IGNORECASE,
)
_API_KEY_VARIABLE = re.compile(r"API_?KEY$", re.IGNORECASE)  # sent to providers, which may send them back
_SHORTEST_KEY = 8  # characters; shorter values would redact ordinary words

_NAMES = (
    r"account_?key|auth_?string|(?:shared_?|secret_?)access_?key|storage_?key|client_?secret|secret_?key|private_?key(?:_?id)?"
    r"|pass(?:word|wd)|passphrase|\bpwd"
    r"|(?:access|api|auth|bot|csrf|private|refresh|security|session|vault|xsrf|(?<![a-z])id)[-_]?token"
)
_OPTIONS = (
    r"(?<![\w-])--?(?=\w)(?:[\w-]{0,32}[-_])?"
    r"(?:pass(?:word|wd|phrase|code)?|pwd|token|secret|api[-_]?key|(?:access|account|secret|storage)[-_]?key)"
)
_LOGINS = r"sshpass|(?:mysql|mariadb|mongo)\w{0,8}|(?:docker|podman|helm|az|oc)\s(?:\w{1,16}\s)?login"

# After an ambiguous word, these are not secrets: redacted text, placeholders, numbers with units, words of a sentence
_REDACTED = r"(?!\[redacted)"
_INNOCENT = (
    r"(?!\[redacted|[<\[][\w .|/-]{1,64}[>\]]|[$~]?\d{1,9}(?:\.\d{1,12})?(?:ms|s|us|usd|%|k|m|b|kb|mb|gb)?(?![\w-])"
    r"|(?:a|an|and|are|as|be|both|can|cannot|empty|excludes?|expected|expired|false|for|from|given|has|if|in|instead"
    r"|invalid|is|may|missing|must|needs?|nil|no|none|not|null|of|on|only|option(?:al|s)?|or|required|set|should"
    r"|string|takes?|the|that|to|true|undefined|unknown|unset|value|was|when|where|which|with|without|yes)(?![\w-]))"
)
_NO_SENTENCE = r"(?![a-z]{1,32}[.,:]?[ ]{1,4}[a-z])"
_HAS_DIGIT = r"(?=[^\s\"',;&}]{0,128}\d)"
_IS_COOKIE = r"(?=[^\s=\"';,]{1,256}=)"


def _named(names: str, sign: str, value: str, word: str = "") -> tuple[str, str]:
    """Build two patterns of a value after a name and a sign: a quoted text (maybe escaped), and a word.

    Args:
        names: The names.
        sign: The sign between name and value, beside blanks and closing quotes.
        value: A condition at the beginning of the value.
        word: A further condition for a value without quotes.
    """
    before = rf"(?:{names})(?:\\?[\"']|%22)?\s{{0,4}}(?:{sign})\s{{0,4}}"
    return (
        rf"({before}b?\\?([\"'])){value}(?:(?!\\?\2)[^\r\n]){{3,1024}}",
        rf"({before}(?:\\?[\"']|%22)?){value}{word}[^\s\"',;&}}]{{3,}}",
    )


# Each shape keeps its groups (the words before the key) and drops the rest. All run in linear time: only the last part
# of a shape is unbounded.
SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        r"(\b(?:bearer|basic)\s{1,4})[\w.~+/=-]{6,}",
        # Other schemes, with all their parameters
        r"(\bauthorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:apikey|aws4-[\w-]{1,20}|digest|negotiate|ntlm|token)\s{1,4})"
        r"[^\r\n]{4,}",
        r"((?:x-api-key|api[-_ ]key|apikey|authorization|x-goog-api-key|access[-_]token)[\"']?\s{0,4}[:=]\s{0,4}[\"']?)"
        r"(?!bearer\b|basic\b)[^\s\"',;&}]{4,}",
        r"([?&](?:key|token|sig|signature|x-amz-signature|x-goog-signature)=)[^\s&\"']{4,}",
        r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)(?:[^-]|-(?!----)){16,16384}"
        r"(?:-----END [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?",
        *_named(_NAMES, "[:=]|%3[AD]", _REDACTED),
        *_named("secret|token", "=|%3D", _INNOCENT),
        *_named("secret", ":|%3A", _INNOCENT, _NO_SENTENCE),
        *_named("token", ":|%3A", _INNOCENT + _HAS_DIGIT),  # texts about models mention tokens
        *_named(_OPTIONS, r"=|\s|(?<=[\"']),", _INNOCENT + "(?!-)"),
        rf"(\b(?:{_LOGINS})\b[^\r\n|;]{{0,160}}?(?<![\w-])(?-i:-p)[\s\"',=]{{0,4}})(?!\[redacted|-)[^\s\"']{{3,}}",
        r"(\bcurl\b[^\r\n|;]{0,160}?(?<![\w-])(?:(?-i:-u)|--(?:proxy-)?user)[\s\"',=]{0,4}[^\s:\"']{1,64}:)[^\s\"']{3,}",
        _named(r"\b(?:set-)?cookie2?", "[:=,]", _IS_COOKIE)[0],
        rf"(\b(?:set-)?cookie2?\s{{0,4}}[:=]\s{{0,4}}){_IS_COOKIE}(?:[^\s;]|; ?)+",  # all of them, to the last
        # The part of a URL's authority before the last `@`: a password may hold others
        r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/?#@:\"'<>]{0,256}:[^\s/?#@\"'<>]{1,256}"
        r"(?:@[^\s/?#@\"'<>]{1,256}){0,8}@(?=[\w.\[-])",
        # An unencoded password may hold characters that end an authority; digits there are a port
        r"(\b[a-z][a-z0-9+.-]{1,20}://)[^\s/?#@:\[\"'<>]{0,256}:(?!\d{1,5}[/?#])[^\s\"'<>]{1,256}@(?=[\w.\[-])",
        r"()\b(?:sk|pk|rk|gsk|xai|hf|pplx|nvapi|r8|csk|fw)[-_][A-Za-z0-9*_-]{8,}",
        r"()\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
        r"()\bAIza[\w-]{20,}",
        r"()\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"()\b(?:github_pat_|glpat-|npm_|xox[abeoprs]-|ya29\.|dop_v1_)[\w.-]{12,}",
        r"()\beyJ[\w-]{8,2000}+\.[\w-]{8,4000}+\.[\w-]*",
    )
)


_named_variables: set[str] = set()
_secrets: set[str] = set()


def treat_as_key(variable: str) -> None:
    """Redact the value of this environment variable from now on."""
    _named_variables.add(variable)


def treat_as_secret(value: str) -> None:
    """Redact this value from now on."""
    _secrets.add(value)


def redact(text: str) -> str:
    """Redact the values of known keys and key variables in a text, and words in the shape of a key."""
    for value in _values(_KEY_VARIABLE):
        text = text.replace(value, REDACTED)
    for shape in SHAPES:
        text = shape.sub(_keep_name, text)
    return text


def _keep_name(found: re.Match[str]) -> str:
    """Replace all but what stands before a key; a template would need an import, which an ending Python refuses."""
    return f"{found[1]}{REDACTED}"


class KnownKeys:
    """The providers' keys in the environment at creation, for replies, where the answer itself may look like a key.

    Create it once for many replies: searching the environment takes most of the time of a reply's processing.
    """

    def __init__(self) -> None:
        self._values = _values(_API_KEY_VARIABLE)
        self._escaped = [re.compile("".join(map(_as_in_json, value))) for value in self._values]

    @property
    def values(self) -> list[str]:
        """The keys, the longest first."""
        return list(self._values)

    def redact(self, text: str) -> str:
        """Redact these keys in a text, even with some characters escaped as in JSON."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        if "\\" in text:
            for escaped in self._escaped:
                text = escaped.sub(REDACTED, text)
        return text


def _as_in_json(character: str) -> str:
    """Build a pattern of a character in JSON: plain, after a backslash, or as its number."""
    digits = "".join(f"[{digit}{digit.upper()}]" for digit in f"{ord(character):04x}")
    return rf"(?:\\?{re.escape(character)}|\\u{digits})"


def _values(variables: re.Pattern[str]) -> list[str]:
    """List secrets and the values of these variables, the longest first, so that none leaves a part of another."""
    names = (name for name in os.environ if name in _named_variables or variables.search(name))
    values = {value.strip() for value in _secrets.union(os.environ.get(name, "") for name in names)}
    long = {value for value in values if len(value) >= _SHORTEST_KEY}
    in_urls = {encoded for value in long for encoded in (quote(value), quote(value, safe=""), quote_plus(value))}
    return sorted(long | in_urls, key=len, reverse=True)


def redact_record(record: logging.LogRecord) -> None:
    """Redact a log record in place, with its arguments and its traceback."""
    try:
        message = record.getMessage()
    except Exception as error:  # noqa: BLE001 - like logging, never fail the caller
        line = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
        message = f"{line} (not written out: {type(error).__name__})"
    record.msg, record.args = redact(message), None
    if record.exc_info and record.exc_info[0] is not None:
        # As text, because a formatter would format the exception again, with its keys
        record.exc_text, record.exc_info = redact(logging.Formatter().formatException(record.exc_info)), None


class RedactionFilter(logging.Filter):
    """Redacts each record, and keeps it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record in place, and return True."""
        redact_record(record)
        return True


_SECRETS = "pass(?:wd|word|phrase)?|pwd|secret|token|sig(?:nature)?|credential|(?:access|account|api)[-_]?key"
_ALONE = "auth|code|jwt|key|sas"  # words that are parts of innocent ones

# Bounded, so that matching takes linear time
_USER_AND_PASSWORD = r"://[^/?#:]{0,256}:[\s\S]{0,1024}@"
_TOKEN_AS_USER = r"https?://[^/?#@]{0,1024}@"
_PARAMETER = rf"[?&;#](?:[^?=&;#]{{0,64}}(?:{_SECRETS})|{_ALONE})="

NO_PASSWORD = rf"^(?![\s\S]*(?i:{_USER_AND_PASSWORD}|{_TOKEN_AS_USER}|{_PARAMETER}))"
"""The pattern of texts without a password in a URL, by which Prefect's server checks its forms."""

_ALLOWED = re.compile(NO_PASSWORD)


def has_password(text: str) -> bool:
    """Tell whether the text has a URL with a password, a token or a signature."""
    return _ALLOWED.match(text) is None


def require_no_password(what: str, url: str, instead: str) -> None:
    """Raise UsageError, without showing the URL, where it holds a password.

    Args:
        what: The role of the URL.
        url: The URL.
        instead: The advice to the user.
    """
    if has_password(url):
        scheme = url.partition("://")[0][:20]
        raise UsageError(f"{what} ({scheme}://…) holds a password, which would be stored in the clear: {instead}")


# Controls other than tab and line feed; invisible characters and those that change the direction of text: zero-width
# characters, bidirectional marks, tags, unusual line separators; surrogates and private-use characters. Variation
# selectors can hide a text: only one after each emoji or symbol stays.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    r"|(?<![#*0-9\xa9\xae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)


def visible(text: str) -> str:
    """Escape invisible and control characters, like those of terminal commands."""
    return _UNSEEN.sub(lambda match: f"\\u{code:04x}" if (code := ord(match[0])) < 0x10000 else f"\\U{code:08x}", text)


def on_one_line(text: str) -> str:
    """Escape line ends and tabs, too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


_PASSED_OVER = r"[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\u3000\ufeff]"  # white or unseen
# A sign that begins a formula, in any width, after characters that a spreadsheet skips
FORMULA = rf"^{_PASSED_OVER}*[=+\-@＝＋－＠﹢﹣﹦﹫−]|^[\t\r\n]"
_FORMULA = re.compile(FORMULA)


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet may read a text as a formula; with `'` before it, it does not."""
    return _FORMULA.search(text) is not None
