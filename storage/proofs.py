"""Proofs: what earlier checks of a lake have proved, so that the next one need not prove it again.

They are kept in the user's cache, not in the lake: who can falsify a lake cannot falsify what was proved of it. Nothing
is lost with them but time.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile

from contracts.contract import Contract
from core.default_lake import whole_address
from core.hashing import content_hash
from storage.lake import Lake

CACHE = "XDG_CACHE_HOME"
FORMAT = 1
# What a proof was made with. Where one of these is another, it might come out otherwise.
ENGINES = ("evalake", "polars", "great-expectations", "pandas", "pyarrow", "numpy", "scipy", "deltalake")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file as it was read: its size, when it was changed, and the SHA-256 of its bytes.

    `rows` of it kept every row rule, by both engines, under the rules and engines of the hash `proved`; that is empty
    where they were not proved, or did not all keep them.
    """

    size: int
    modified_ns: int
    digest: str
    rows: int = 0
    proved: str = ""


Files = Mapping[str, StoredFile]
"""Data files by their path within their table."""


@dataclass
class Proofs:
    """What is known of a lake's data files, by table, and the proofs of the snapshots that were right, as hashes."""

    files: dict[str, Files] = field(default_factory=dict)
    snapshots: frozenset[str] = frozenset()


def read_proofs(lake: Lake) -> Proofs:
    """Read what earlier checks of this user have proved; nothing where the file is another's, or damaged."""
    try:
        with _place(lake).open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return Proofs()
            kept = json.load(file)
        if (kept["format"], kept["lake"]) != (FORMAT, whole_address(lake.uri)):
            return Proofs()
        files: dict[str, Files] = {
            table: {path: StoredFile(*values) for path, values in of_table.items()}
            for table, of_table in kept["files"].items()
        }
        return Proofs(files, frozenset(kept["snapshots"]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Proofs()


def keep_proofs(lake: Lake, proofs: Proofs) -> None:
    """Keep what was proved for the next check; where it cannot be kept, the next proves it again."""
    kept = {
        "format": FORMAT,
        "lake": whole_address(lake.uri),
        "files": {
            table: {path: astuple(file) for path, file in files.items()} for table, files in proofs.files.items()
        },
        "snapshots": sorted(proofs.snapshots),
    }
    place = _place(lake)
    with suppress(OSError):
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Its mode is 0600, and a reader never sees half of it.
        with NamedTemporaryFile("w", encoding="utf-8", dir=place.parent, delete=False) as file:
            json.dump(kept, file)
        Path(file.name).replace(place)


def rules_and_engines(contract: Contract) -> str:
    """SHA-256 over all that decides whether rows of a table keep its row rules, but for the rows."""
    return content_hash(
        [contract.table, contract.schema_version, repr(contract.columns), repr(contract.rules), engines()]
    )


@cache
def engines() -> tuple[str, ...]:
    """The versions of all that proves rows and snapshots."""
    return tuple(version(name) for name in ENGINES)


def _place(lake: Lake) -> Path:
    cache = Path(os.environ.get(CACHE) or Path.home() / ".cache")
    return cache / "evalake" / "checks" / f"{content_hash(whole_address(lake.uri))[:16]}.json"
