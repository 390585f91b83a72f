"""Keeps keys out of messages, replies and logs: known keys by value, in messages everything else by shape."""

import logging
import os
import re
from functools import lru_cache
from urllib.parse import quote, quote_plus

from evalake.core.errors import UsageError

REDACTED = "[redacted]"

_KEY_VARIABLE = re.compile(
    r"(?:API_?KEY|(?:ACCESS|ACCOUNT|STORAGE)_KEY(?:_ID)?|SECRET(?:_KEY)?|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?"
    r"|AUTH_STRING|CONNECTION_STRING)$",
    re.IGNORECASE,
)
_API_KEY_VARIABLE = re.compile(r"API_?KEY$", re.IGNORECASE)  # what providers are sent, and so can send back
_SHORTEST_KEY = 8  # a shorter value would redact innocent words

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

# Behind a word that has other meanings, too, these are no secret: what was redacted, what stands for a value, a number
# with or without a unit, and words of a sentence or a setting.
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
    """Build two patterns of a value behind a name and a sign: a text in quotes, which may be escaped, and a word.

    Args:
        names: The names.
        sign: What stands between a name and its value, beside blanks and the end of the name's quotes.
        value: A condition that the value meets where it begins.
        word: A further one for a value without quotes.
    """
    before = rf"(?:{names})(?:\\?[\"']|%22)?\s{{0,4}}(?:{sign})\s{{0,4}}"
    return (
        rf"({before}b?\\?([\"'])){value}(?:(?!\\?\2)[^\r\n]){{3,1024}}",
        rf"({before}(?:\\?[\"']|%22)?){value}{word}[^\s\"',;&}}]{{3,}}",
    )


# Each shape keeps what its groups matched (the words before the key) and drops the rest. All run in linear time: what
# has no bound stands at the end.
SHAPES = tuple(
    re.compile(shape, re.IGNORECASE)
    for shape in (
        r"(\b(?:bearer|basic)\s{1,4})[\w.~+/=-]{6,}",
        # Other schemes than those two: all that stands behind them, for it may be parameters
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
        *_named("token", ":|%3A", _INNOCENT + _HAS_DIGIT),  # texts about models say much of tokens that are words
        *_named(_OPTIONS, r"=|\s|(?<=[\"']),", _INNOCENT + "(?!-)"),
        rf"(\b(?:{_LOGINS})\b[^\r\n|;]{{0,160}}?(?<![\w-])(?-i:-p)[\s\"',=]{{0,4}})(?!\[redacted|-)[^\s\"']{{3,}}",
        r"(\bcurl\b[^\r\n|;]{0,160}?(?<![\w-])(?:(?-i:-u)|--(?:proxy-)?user)[\s\"',=]{0,4}[^\s:\"']{1,64}:)[^\s\"']{3,}",
        _named(r"\b(?:set-)?cookie2?", "[:=,]", _IS_COOKIE)[0],
        rf"(\b(?:set-)?cookie2?\s{{0,4}}[:=]\s{{0,4}}){_IS_COOKIE}(?:[^\s;]|; ?)+",  # all of them, to the last
        # Whatever stands before the last `@` of a URL's authority: a password may hold others
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
    """Redact the value of this environment variable, whatever its name looks like."""
    _named_variables.add(variable)


def treat_as_secret(value: str) -> None:
    """Redact this value, which came from elsewhere than the environment."""
    _secrets.add(value)


def redact(text: str) -> str:
    """Redact keys in `text`: the values of known keys and key variables, and anything shaped like a key."""
    for value in _values(_KEY_VARIABLE):
        text = text.replace(value, REDACTED)
    for shape in SHAPES:
        text = shape.sub(rf"\1{REDACTED}", text)
    return text


class KnownKeys:
    """The keys that providers are called with, as the environment held them when this was made.

    Used for replies, in which text that only looks like a key may be the answer. Made once for many of them: a search
    through the environment takes longer than everything else that is done to a reply.
    """

    def __init__(self) -> None:
        self._values = _values(_API_KEY_VARIABLE)
        self._escaped = [re.compile("".join(map(_as_in_json, value))) for value in self._values]

    @property
    def values(self) -> list[str]:
        """The keys, the longest first."""
        return list(self._values)

    def redact(self, text: str) -> str:
        """Redact these keys in `text`, also where JSON spells some of their characters as escapes."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        if "\\" in text:
            for escaped in self._escaped:
                text = escaped.sub(REDACTED, text)
        return text


def _as_in_json(character: str) -> str:
    """Build a pattern of a character as JSON may write it: itself, behind a backslash, or as its number."""
    digits = "".join(f"[{digit}{digit.upper()}]" for digit in f"{ord(character):04x}")
    return rf"(?:\\?{re.escape(character)}|\\u{digits})"


def _values(variables: re.Pattern[str]) -> list[str]:
    """List secrets and the values of such variables, the longest first, so that none leaves a part of another."""
    names = (name for name in os.environ if name in _named_variables or _is_named_so(name, variables))
    values = {value.strip() for value in _secrets.union(os.environ.get(name, "") for name in names)}
    long = {value for value in values if len(value) >= _SHORTEST_KEY}
    as_in_urls = {encode(value) for value in long for encode in (quote, _quote_all, quote_plus)}
    return sorted(long | as_in_urls, key=len, reverse=True)


def _quote_all(value: str) -> str:
    return quote(value, safe="")


@lru_cache(maxsize=1024)  # every log record asks about the same names
def _is_named_so(name: str, variables: re.Pattern[str]) -> bool:
    return variables.search(name) is not None


def redact_record(record: logging.LogRecord) -> None:
    """Redact the whole text of a log record in place, its arguments and its traceback included."""
    try:
        message = record.getMessage()
    except Exception as error:  # noqa: BLE001 - as in logging itself, a wrong line fails nobody who logs
        line = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
        message = f"{line} (not written out: {type(error).__name__})"
    record.msg, record.args = redact(message), None
    if record.exc_info and record.exc_info[0] is not None:
        # Only as text: a formatter that formats the exception anew would bring back what is taken out here.
        record.exc_text, record.exc_info = redact(logging.Formatter().formatException(record.exc_info)), None


class RedactionFilter(logging.Filter):
    """Redacts the whole text of each record; drops none."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record in place, and return True: it is kept."""
        redact_record(record)
        return True


# Passwords in URLs: they are refused wherever the URL would be kept, which a flow's parameters always are.


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


# Text of others as it is safe to show: what would hide, reorder or control other text is written as an escape.


# All controls but tab and line feed; and what is not seen, or turns the direction of what is: zero-width characters,
# bidirectional marks, embeddings and isolates, tags, and the separators that some terminals take for line ends; halves
# of characters, and those that every font draws as it likes. Selectors of variants can carry a hidden text: only those
# of emoji and other symbols stay, one behind each.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    r"|(?<![#*0-9\xa9\xae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)


def visible(text: str) -> str:
    """Escape control characters, such as those that begin a terminal's commands, and unseen ones."""
    return _UNSEEN.sub(lambda match: _escape(ord(match[0])), text)


def on_one_line(text: str) -> str:
    """Escape line ends and tabs, too, so that a message of one line stays one line, whatever names it holds."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# Cells of sheets that a spreadsheet takes as text, though they begin as a formula does.


_PASSED_OVER = r"[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\u3000\ufeff]"  # white or unseen
# A sign by which a formula begins, narrow or of another width, after anything that a spreadsheet may pass over
FORMULA = rf"^{_PASSED_OVER}*[=+\-@＝＋－＠﹢﹣﹦﹫−]|^[\t\r\n]"
_FORMULA = re.compile(FORMULA)


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet may take a text for a formula; it does not with `'` before it."""
    return _FORMULA.search(text) is not None
