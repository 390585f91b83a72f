"""The words by which tables say who gave a reply, where that is no address and no name of the user's."""

PROVIDER = "provider"  # the provider's own service
IN_PROCESS = "in-process"  # a baseline
IMPORT = "import"  # recorded results
UNKNOWN = "unknown"  # rows from before the column
UNSET = "unset"  # a model of a server whose address nobody has given
WORDS = (PROVIDER, IN_PROCESS, IMPORT, UNKNOWN, UNSET)
"""Every other endpoint is an address, which has `://`, or a name that the user's own configuration declares."""
