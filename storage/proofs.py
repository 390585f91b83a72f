"""Proofs: what earlier checks of a lake have proved, so that the next one need not prove it again.

They are kept in the user's cache, not in the lake: who can falsify a lake cannot falsify what was proved of it. Nothing
is lost with them but time.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from contracts.contract import Contract
from core.default_lake import whole_address
from core.hashing import content_hash
from core.private_folders import cache_folder, is_ours, make_private
from storage.lake import Lake

FORMAT = 1
# What a proof was made with: another version of one of these might give another result.
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
        if not is_ours(place := _place(lake)):
            return Proofs()
        kept = json.loads(place.read_text(encoding="utf-8"))
        if (kept["format"], kept["lake"]) != (FORMAT, whole_address(lake.uri)):
            return Proofs()
        files: dict[str, Files] = {
            table: {path: StoredFile(*values) for path, values in of_table.items()}
            for table, of_table in kept["files"].items()
        }
        return Proofs(files, frozenset(kept["snapshots"]))
    except (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError):
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
    with suppress(OSError, RuntimeError):
        place = _place(lake)
        make_private(place.parent)
        if is_ours(place):
            with TemporaryDirectory(dir=place.parent) as folder:  # a reader never sees half of it
                draft = Path(folder) / place.name
                draft.write_text(json.dumps(kept), encoding="utf-8")
                draft.chmod(0o600)
                draft.replace(place)


def rules_and_engines(contract: Contract) -> str:
    """Hash (SHA-256) all that decides whether rows of a table keep its row rules, but for the rows."""
    return content_hash(
        [contract.table, contract.schema_version, repr(contract.columns), repr(contract.rules), engines()]
    )


@cache
def engines() -> tuple[str, ...]:
    """Look up the versions of all packages that prove rows and snapshots."""
    return tuple(version(name) for name in ENGINES)


def _place(lake: Lake) -> Path:
    return cache_folder() / "checks" / f"{content_hash(whole_address(lake.uri))[:16]}.json"
