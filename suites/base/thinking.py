"""A reply's thinking, `<think>…</think>`, apart from what it says.

In any case, several times if need be, up to the first closing tag. A thinking that is not finished lasts to the end; a
`</think>` before any `<think>` ends one that the chat template had begun.
"""

import re

_TAG = re.compile(r"<(/?)think>", re.IGNORECASE | re.ASCII)


def split_thinking(text: str) -> tuple[str, str]:
    """What a reply says outside its thinking, and what it says inside."""
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
