"""Where contracts come from. What a source gives becomes samples here, or is left out for a stated reason."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalake.core.files import Files
from evalake.sdk.dataset import DUPLICATE, NOT_TEXT, REPEATED_ID, DatasetBuilder
from evalake.sdk.json_in_text import json_object
from evalake.sdk.results import explain
from evalake.sdk.sample import Seen
from evalake.sdk.sources import is_storable
from evalake.suites.solidity_audit.truth import SEVERITIES, GroundTruth, as_sample, normalised

LONGEST_CONTRACT = 1_000_000  # characters

NO_CONTRACT = "no contract"
TOO_LONG = "contract too long"
BAD_TRUTH = "ground truth is not of the form"
UNKNOWN_SEVERITY = "unknown severity"
CONTRADICTION = "duplicate with another ground truth"


def read_object(path: Path, files: Files) -> tuple[str, dict[str, Any] | None]:
    """Read a file of JSON, in whichever Unicode it is written: its text, and the object that it holds, if any.

    What is no text is shown by its bytes.
    """
    content = files.read(path)
    text = content.decode(json.detect_encoding(content), "backslashreplace")
    return text, json_object(text)


@dataclass(frozen=True, slots=True)
class Material:
    """What a source says of one contract, unchecked. Contracts of one cluster (like twins) belong together."""

    contract: Any
    truth: Mapping[str, Any]
    sample_id: Any
    cluster: Any = None
    note: Any = None
    raw: str = ""


@dataclass
class AuditBuilder(DatasetBuilder):
    """Collects one dataset in the order in which its source is read."""

    implied: list[str] = field(default_factory=list)  # samples whose class follows from what is said of them
    _labelled: Seen = field(default_factory=Seen)  # contracts, alone and with their targets

    def add_material(self, where: str, material: Material) -> None:
        """Add a sample, or skip it for a stated reason. Of equal contracts the first is kept."""
        raw = material.raw or str(material.sample_id)
        reason = self._flaw(material)
        if reason is not None:
            self.skip(where, reason, raw)
            return
        try:
            truth = GroundTruth.model_validate(dict(material.truth))
            flaw = truth.flaw
        except ValidationError as error:
            flaw = explain(error)[0]
        except RecursionError:
            flaw = "nested too deeply"
        if flaw is not None:
            self.skip(f"{where} ({flaw})", BAD_TRUTH, raw)
            return
        if truth.severity is not None and normalised(truth.severity) not in SEVERITIES:
            self.skip(f"{where} ({truth.severity[:40]})", UNKNOWN_SEVERITY, raw)
            return
        if not truth.is_vulnerable:
            truth = truth.model_copy(update={"severity": None})  # a patched twin has none
        cluster = material.cluster if isinstance(material.cluster, str) and material.cluster else material.sample_id
        sample = as_sample(self.dataset, material.sample_id, material.contract, truth, cluster, material.note or None)
        if sample.input in self._labelled:
            same = f"{sample.input}\0{sample.target}" in self._labelled
            self.skip(where, DUPLICATE if same else CONTRADICTION, None if same else raw)
            return
        self._labelled.add(sample.input)
        self._labelled.add(f"{sample.input}\0{sample.target}")
        self.add(sample)

    def _flaw(self, material: Material) -> str | None:
        contract = material.contract
        if contract is None or (isinstance(contract, str) and not contract.strip()):
            return NO_CONTRACT
        texts = (contract, material.sample_id, material.cluster or "", material.note or "")
        if not all(isinstance(text, str) and is_storable(text) for text in texts) or not material.sample_id.strip():
            return NOT_TEXT
        if len(contract) > LONGEST_CONTRACT:
            return TOO_LONG
        return REPEATED_ID if material.sample_id in self.ids else None


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one contract, and by file the number of lines that precede the file's own in the text.

    `marked` maps the numbers of line markers that were taken out to lines of the first file.
    """

    text: str
    lines_before: Mapping[str, int] = field(default_factory=dict)
    marked: Mapping[int, int] = field(default_factory=dict)

    def lines_of(self, stated: Any) -> Any:
        """Convert lines stated by file to lines of the text; leave what is not of the form as it is, to be refused."""
        if not isinstance(stated, dict):
            return stated
        try:
            return sorted(self.lines_before[file] + line for file, lines in stated.items() for line in lines)
        except (KeyError, TypeError):
            return stated
