"""A reply's thinking apart from what it says: `<think>…</think>`, and the channels of harmony.

Tags count in upper and lower case; there may be several blocks, each of which ends at the first closing tag. A block
without a closing tag lasts to the end; a `</think>` before any `<think>` ends one that the chat template had begun.

Servers of gpt-oss models leak channels into the text: `<|channel|>analysis<|message|>… <|channel|>final<|message|>…`.
The channel `final` is what the model says, every other one is thinking; a reply without `final` says nothing.
"""

import re

_TAG = re.compile(r"<(/?)think>", re.IGNORECASE | re.ASCII)
_CHANNEL = re.compile(
    r"<\|channel\|>\s*+(\w++)(?:[^<]{0,100}<\|constrain\|>[^<]{0,100})?(?:[^<\n]{0,100}<\|message\|>)?", re.ASCII
)
_END = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_START = re.compile(r"<\|start\|>\w*")
FINAL = "final"


def split_thinking(text: str) -> tuple[str, str]:
    """Split a reply into what it says outside its thinking and what it says inside."""
    if "<" not in text:
        return text, ""
    said, thought = _split_channels(text)
    outside: list[str] = []
    inside: list[str] = [thought]
    tags = list(_TAG.finditer(said))
    position, thinking = 0, bool(tags) and tags[0][1] == "/"
    for tag in tags:
        (inside if thinking else outside).append(said[position : tag.start()])
        position, thinking = tag.end(), tag[1] != "/"
    (inside if thinking else outside).append(said[position:])
    return "".join(outside), "".join(inside)


def _split_channels(text: str) -> tuple[str, str]:
    """Split a text into what its channel `final` says, with what stands before all channels, and the other channels."""
    channels = list(_CHANNEL.finditer(text))
    if not channels:
        return text, ""
    said = [_START.sub("", text[: channels[0].start()])]
    thought: list[str] = []
    for channel in channels:
        end = _END.search(text, channel.end())
        (said if channel[1] == FINAL else thought).append(text[channel.end() : end.start() if end else len(text)])
    return "".join(said), "".join(thought)
