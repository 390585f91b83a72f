"""The secret of a lake: 256 bits that fence quoted text in prompts. No query, page or export shows it.

It is the description of an empty table, in the table's first commit, which only one process can make. No contract
declares the table, so that no reader of tables finds it.
"""

import secrets

from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.schema import PrimitiveType

from evalake.core.errors import LakeError
from evalake.storage.lake import Lake, short_message
from evalake.storage.landing import NO_RETRIES

FOLDER = "_secret"  # queries read no folder whose name begins with an underscore
BYTES = 32


def read_secret(lake: Lake) -> bytes | None:
    """Read the secret of a lake; None before it is created. Raises LakeError where it is damaged."""
    table = lake.find(FOLDER, version=0)  # only the first commit counts
    if table is None:
        return None
    try:
        secret = bytes.fromhex(table.metadata().description or "")
    except ValueError:
        secret = b""
    if len(secret) != BYTES:
        raise LakeError(
            f"the secret of the lake {lake.uri} is damaged: restore the folder {FOLDER} from a backup, or delete it; "
            "evalake then asks again about the sessions that were scored with it"
        )
    return secret


def ensure_secret(lake: Lake) -> bytes:
    """Read the secret of a lake, or create it; concurrent processes get the same one."""
    known = read_secret(lake)
    if known is None:
        _create(lake)
        known = read_secret(lake)
    if known is None:
        raise LakeError(f"the secret of the lake {lake.uri} was deleted during its creation: try again")
    return known


def _create(lake: Lake) -> None:
    lake.require_writable()
    try:
        DeltaTable.create(
            f"{lake.uri.rstrip('/')}/{FOLDER}",
            Schema([Field("nothing", PrimitiveType("string"))]),  # a table needs a column
            mode="error",
            description=secrets.token_hex(BYTES),
            commit_properties=NO_RETRIES,
            storage_options=dict(lake.storage_options) or None,
        )
    except CommitFailedError:
        return  # another process created it
    except (DeltaError, OSError) as error:
        if lake.find(FOLDER) is None:
            raise LakeError(f"cannot create the secret of the lake {lake.uri}: {short_message(error)}") from error
