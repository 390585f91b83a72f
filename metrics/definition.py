"""What a metric is: a name, an estimator, the slices it is reported for; and the declared identity of its values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.hashing import content_hash
from metrics.estimator import Estimator

ENGINE_VERSION = 6
"""Changes whenever the engine can give another value, error, interval or count for the same rows and declarations."""


@dataclass(frozen=True, eq=False)
class Metric:
    """One metric of a suite.

    Attributes:
        slices: "all" and names of columns, one value of which is one slice.
        version: Changes whenever the metric's meaning does: what its expressions and functions make of the same rows.
        parameters: What the values depend on beside, such as weights from the configuration; as JSON knows it.
    """

    name: str
    estimator: Estimator
    tier: int | None = None
    slices: tuple[str, ...] = ("all",)
    description: str = ""
    version: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> list[Any]:
        """What tells this metric's values from others."""
        return [self.name, self.version, self.tier, list(self.slices), dict(self.parameters)]


def definition_hash(metrics: Sequence[Metric], *more: Any) -> str:
    """Compute the SHA-256, in hexadecimal, of the versions of the engine and of the metrics, and of what is added.

    It follows from what is declared alone, never from how code happens to be written, and so is the same for every
    Python, machine and library.
    """
    return content_hash([ENGINE_VERSION, [metric.identity for metric in metrics], *more])
