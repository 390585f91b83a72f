"""The secret of a lake: 256 bits that fence what its prompts quote. No query, page or export shows it.

It is the description of a table without rows, in its first commit: every store takes that commit once, whoever else
tries to make one at the same moment. No contract declares the table, so nothing that reads tables knows it.
"""

import secrets

from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import PrimitiveType

from evalake.core.errors import LakeError
from evalake.storage.commit import RIGHT_AFTER
from evalake.storage.lake import Lake, first_words

FOLDER = "_secret"  # a query may read no folder of a lake whose name begins with an underscore
BYTES = 32


def read_secret(lake: Lake) -> bytes | None:
    """Read the secret of a lake; None where it has none yet. Raises LakeError where it is damaged."""
    table = lake.find(FOLDER, version=0)  # the first commit counts, for ever
    if table is None:
        return None
    try:
        secret = bytes.fromhex(table.metadata().description or "")
    except ValueError:
        secret = b""
    if len(secret) != BYTES:
        raise LakeError(
            f"the secret of the lake {lake.uri} is damaged: restore the folder {FOLDER} from a backup, or delete it, "
            "and the sessions that were scored under it are asked about again"
        )
    return secret


def ensure_secret(lake: Lake) -> bytes:
    """Read the secret of a lake, made where it has none; whoever makes it at the same moment gets the same."""
    known = read_secret(lake)
    if known is None:
        _create(lake)
        known = read_secret(lake)
    if known is None:
        raise LakeError(f"the secret of the lake {lake.uri} was deleted while it was made: try again")
    return known


def _create(lake: Lake) -> None:
    lake.require_writable()
    try:
        DeltaTable.create(
            f"{lake.uri.rstrip('/')}/{FOLDER}",
            Schema([Field("nothing", PrimitiveType("string"))]),  # a table has a column
            mode="error",
            description=secrets.token_hex(BYTES),
            commit_properties=RIGHT_AFTER,
            storage_options=dict(lake.storage_options) or None,
        )
    except CommitFailedError:
        return  # another process made it at the same moment
    except (DeltaError, OSError) as error:
        if lake.find(FOLDER) is None:
            raise LakeError(f"cannot keep a secret in the lake {lake.uri}: {first_words(error)}") from error
