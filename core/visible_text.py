"""Text of others as it is safe to show: what would hide, reorder or control other text is written as an escape."""

import re

# All controls but tab and line feed; and what is not seen, or turns the direction of what is: zero-width characters,
# bidirectional marks, embeddings and isolates, tags, and the separators that some terminals take for line ends; halves
# of characters, and those that every font draws as it likes.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\uf8ff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\U000f0000-\U0010ffff]"
)


def visible(text: str) -> str:
    """Escape control characters, such as those that begin a terminal's commands, and unseen ones."""
    return _UNSEEN.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
