"""A judge of sessions behind the model server: noisy as judges are, and one that can change its mind."""

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evalake.core.hashing import content_hash
from evalake.suites.session_review.prompts import templates

NOISE = 4.0  # points, the standard deviation of its scores of one session


class NoisyJudge:
    """Replies for rules of the model server: a score around the session's own, `shift` points off once it is set.

    What it answers to the n-th request about a session follows from the session and n, so that tests can be repeated.
    """

    def __init__(self) -> None:
        self.shift = 0
        self._asked: Counter[str] = Counter()

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        if messages[-1]["content"] == templates()["missing_tools"]:
            return "No tool was missing."
        session = content_hash(re.sub("[0-9a-f]{16,}", "", messages[-1]["content"]))  # without the lake's own mark
        self._asked[session] += 1
        chance = random.Random(f"{session} {self._asked[session]}")
        usual = random.Random(session).randint(35, 65)
        return f"The analysis of this session.\n\n{round(min(max(chance.gauss(usual, NOISE) + self.shift, 0), 100))}"
