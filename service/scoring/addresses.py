"""Session ids in addresses: whatever the system that made a session calls it, slashes and line breaks included."""

from starlette.convertors import Convertor, register_url_convertor


class SessionIdConvertor(Convertor[str]):
    """Starlette's own `path` ends at a line break, and its `str` at a slash."""

    regex = r"[\s\S]+"

    def convert(self, value: str) -> str:
        """The id as it stands in the address, decoded by the server."""
        return value

    def to_string(self, value: str) -> str:
        """The id as an address has it before it is encoded."""
        return value


register_url_convertor("session", SessionIdConvertor())

SESSION = "/sessions/{session_id:session}"
