"""What a campaign came to: one line of the table in docs/reliability.md."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """A fault, how often it was injected, and what held.

    `broken` says what did not; nothing where all of it held.
    """

    fault: str
    injected: int
    held: str
    broken: str = ""
