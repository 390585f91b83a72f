"""Text as every engine reads it alike: regular expressions in a portable form, and what white space is.

Polars (Rust), pandas (RE2 or Python), and readers of an exported contract (ECMAScript) disagree about `\\d`, `\\s`,
`\\w`, `\\b`, `$`, flags and look-around. A contract's pattern does without them, and then means the same everywhere.
"""

import re

from contracts.errors import ContractError

# Every character with the Unicode property White_Space, spelled out because each engine has a shorter list of its own.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

_ESCAPE = r"\\[nrt!-/:;=?@\[-^`{-~]"  # line ends, tab, and ASCII punctuation
_PORTABLE = re.compile(
    rf"""(?:
        (?: [^\\^$.|?*+()\[\]{{}}] | \. | {_ESCAPE}         # a character, any character but a line feed, an escape
          | \[\^? (?: (?:[^\\\[\]^&~|-]|{_ESCAPE}) -? )+ \]  # a class, without set operations
          | \) )
        (?: (?: [*+?] | \{{[0-9]{{1,3}}(?:,(?:[0-9]{{1,3}})?)?\}} ) \?? )?
      | \((?:\?:)? | \|
    )*""",
    re.VERBOSE,
)


def require_portable(pattern: str) -> None:
    """Raise ContractError unless every engine reads `pattern` alike.

    Allowed are characters, `.`, escaped punctuation, `\\n`, `\\r`, `\\t`, classes, groups, `|`, repetition up to 999.
    """
    if not _PORTABLE.fullmatch(pattern):
        raise ContractError(
            f"the pattern {pattern!r} uses something that engines read differently: "
            "write it with characters, classes, groups, alternatives and repetition only"
        )
    try:
        re.compile(pattern)
    except re.error as error:
        raise ContractError(f"the pattern {pattern!r} is not a regular expression: {error}") from error


def whole(pattern: str) -> str:
    """The pattern held to the whole string, line ends included, as Rust's regular expressions write it."""
    return rf"\A(?:{pattern})\z"
