"""Text as every engine reads it: what white space is, and how a pattern is held to a whole string."""

# Every character with the Unicode property White_Space, spelled out because each engine has a shorter list of its own.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def whole(pattern: str) -> str:
    """Anchor the pattern to the whole string, line ends included, as Rust's regular expressions write it."""
    return rf"\A(?:{pattern})\z"
