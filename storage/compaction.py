"""Compaction: small files of a table are joined, by one process at a time."""

from uuid import uuid4

from deltalake import DeltaTable, WriterProperties

_LATEST = "evalake.compaction"


def compact(
    table: DeltaTable, target_size: int | None = None, writer_properties: WriterProperties | None = None
) -> None:
    """Join the small files of a table that was just opened. Raises CommitFailedError where another was quicker.

    The engine checks whether a compaction conflicts with any other change, but not with another compaction: two that
    began on the same files would both keep their rows. So each begins with a change of the table's properties, and the
    engine refuses commits that conflict with such a change.
    """
    if len(table.file_uris()) > 1:
        table.alter.set_table_properties({_LATEST: uuid4().hex}, raise_if_not_exists=False)
        table.optimize.compact(target_size=target_size, writer_properties=writer_properties)
