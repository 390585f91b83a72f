"""A reply's thinking, `<think>…</think>`, apart from what it says.

Tags count in upper and lower case; there may be several blocks, each of which ends at the first closing tag. A block
without a closing tag lasts to the end; a `</think>` before any `<think>` ends one that the chat template had begun.
"""

import re

_TAG = re.compile(r"<(/?)think>", re.IGNORECASE | re.ASCII)


def split_thinking(text: str) -> tuple[str, str]:
    """Split a reply into what it says outside its thinking and what it says inside."""
    if "<" not in text:
        return text, ""
    outside: list[str] = []
    inside: list[str] = []
    tags = list(_TAG.finditer(text))
    position, thinking = 0, bool(tags) and tags[0][1] == "/"
    for tag in tags:
        (inside if thinking else outside).append(text[position : tag.start()])
        position, thinking = tag.end(), tag[1] != "/"
    (inside if thinking else outside).append(text[position:])
    return "".join(outside), "".join(inside)
