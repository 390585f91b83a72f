"""What a source gives becomes samples, or is left out for a stated reason; every kind of source goes through here."""

import hashlib
import sys
from dataclasses import dataclass, field
from typing import Any

from core.records import record
from suites.base import Sample
from suites.base.dataset_builder import DUPLICATE, NOT_TEXT, REPEATED_ID, DatasetBuilder
from suites.base.sources import is_storable

SUITE = "command_guard"
LABELS = ("malicious", "harmless")
LONGEST_COMMAND = 128 * 1024  # characters; Linux takes no longer argument

CONTRADICTION = "duplicate with another label"
MISSING_COMMAND = "no command"
COMMAND_TOO_LONG = "command too long"
UNKNOWN_LABEL = "label is neither malicious nor harmless"


@record
class Material:
    """What a source says of one command, unchecked. `name` goes into the identity where no sample_id is given.

    Commands of one `cluster` (such as one binary's) belong together.
    """

    command: Any
    label: Any
    category: Any = None
    difficulty: Any = None
    note: Any = None
    sample_id: Any = None
    cluster: Any = None
    name: str = ""
    raw: str = ""


@dataclass
class CommandDatasetBuilder(DatasetBuilder):
    """Collects one dataset in the order in which its source is read."""

    _labels: dict[str, str] = field(default_factory=dict)

    def add_material(self, where: str, material: Material) -> None:
        """Add a sample, or skip it for a stated reason. Of equal commands the first is kept."""
        reason = _flaw(material)
        if reason is not None:
            self.skip(where, reason, material.raw, material.label if material.label in LABELS else None)
            return
        command = material.command
        if command in self._labels:
            same = self._labels[command] == material.label
            self.skip(where, DUPLICATE if same else CONTRADICTION, None if same else material.raw)
            return
        sample_id = material.sample_id or self._identity(command, material.name)
        if sample_id in self.ids:
            self.skip(where, REPEATED_ID, material.raw)
            return
        self._labels[command] = material.label
        self.add(
            Sample(
                SUITE,
                self.dataset,
                sample_id,
                command,
                label=_shared(material.label),
                category=_shared((material.category or "").strip()),
                difficulty=_shared(material.difficulty),
                cluster=material.cluster or None,
                note=material.note or None,
            )
        )

    def _identity(self, command: str, name: str) -> str:
        """Build `dataset/name_digest`, with the shortest digest of the command (8 digits or more) that is not taken."""
        digest = hashlib.sha256(command.encode("utf-8")).hexdigest()
        names = (f"{self.dataset}/{name}{'_' if name else ''}{digest[:digits]}" for digits in (8, 16, 64))
        return next((each for each in names if each not in self.ids), f"{self.dataset}/{digest}")


def _shared(text: str | None) -> str | None:
    """Intern a text, so that samples with the same text share one object; None for an empty one."""
    return sys.intern(text) if text else None


def _flaw(material: Material) -> str | None:
    """Find why this cannot be a sample; None where it can."""
    command = material.command
    if command is None or (isinstance(command, str) and not command.strip()):
        return MISSING_COMMAND
    texts = (
        command,
        material.category,
        material.difficulty,
        material.note,
        material.sample_id,
        material.cluster,
        material.name,
    )
    try:
        storable = is_storable("".join([text for text in texts if text is not None]))
    except TypeError:  # one of them is no text
        storable = False
    if not storable:
        return NOT_TEXT
    if len(command) > LONGEST_COMMAND:
        return COMMAND_TOO_LONG
    return None if material.label in LABELS else UNKNOWN_LABEL
