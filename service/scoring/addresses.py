"""Session ids in addresses: whatever the system that made a session calls it, slashes and line breaks included."""

from starlette.convertors import Convertor, register_url_convertor


class SessionIdConvertor(Convertor[str]):
    """A convertor for session ids: Starlette's own `path` ends at a line break, and its `str` at a slash."""

    regex = r"[\s\S]+"

    def convert(self, value: str) -> str:
        """Return the id as it stands in the address, which the server has decoded."""
        return value

    def to_string(self, value: str) -> str:
        """Return the id as it stands in an address before it is encoded."""
        return value


register_url_convertor("session", SessionIdConvertor())

SESSION = "/sessions/{session_id:session}"
