"""The knowledge probe: does a model recognise a contract from its training, and name the incident behind it?"""

import re
from collections.abc import Mapping
from typing import Any

from evalake.sdk.lenient_json import find_object
from evalake.suites.solidity_audit.truth import GroundTruth

FIELDS = ("recognised", "project", "incident", "year", "vulnerability")
SHORTEST = 4
"""Characters from which a word of an incident's name tells it from others."""

_WORD = re.compile(r"[a-z0-9]+")
_COMMON = frozenset(
    _WORD.findall("""
    attack bank bridge contract crypto defi exchange exploit finance flash governance hack incident labs lending
    loan market money network platform pool project protocol rug smart swap token vault wallet world
    """)
)


def probed(text: str | None, truth: GroundTruth) -> Mapping[str, bool | None]:
    """Read the columns about a probe's answer.

    recognised    the model says that it knows the contract; null where it does not say
    contaminated  it does, and names the known incident; null where no incident is known, or it does not say
    """
    found = find_object(text, FIELDS) if text else None
    given: Mapping[str, Any] = {} if found is None else found.value
    said = given.get("recognised")
    recognised = said if isinstance(said, bool) else None
    telling = {word for word in words(truth.incident or "") if len(word) >= SHORTEST and word not in _COMMON}
    named = telling & {word for name in ("project", "incident") for word in words(str(given.get(name) or ""))}
    return {
        "recognised": recognised,
        "contaminated": None if recognised is None or not telling else recognised and bool(named),
    }


def words(text: str) -> set[str]:
    """List the words of a name, also those that capitals join: `PolyNetwork` has poly and network."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return {*_WORD.findall(text.lower()), *_WORD.findall(apart.lower())}
