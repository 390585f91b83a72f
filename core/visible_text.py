"""Text of others as it is safe to show: what would hide, reorder or control other text is written as an escape."""

import re

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
