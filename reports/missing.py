"""Missing items of one model: how many, why, and what they leave open."""

from collections.abc import Mapping
from dataclasses import dataclass

from metrics.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Missing:
    """What a run lacks of one model, as one judge would have seen it."""

    model: str
    judge: str | None
    items: int
    missing: int
    kinds: Mapping[str, int]
    bounds: Mapping[str, Bounds]
    """By headline metric, the lowest and the highest value that it can have once all is known."""

    @property
    def sentence(self) -> str:
        """How much is missing, why, and what that leaves open."""
        judged = "" if self.judge is None else f" by {self.judge}"
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        ends = ", ".join(f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in self.bounds.items())
        leaves = f"; whatever they are: {ends}" if ends else ""
        return f"{self.model}{judged}: {self.missing:,} of {self.items:,} items are missing ({kinds}){leaves}"
