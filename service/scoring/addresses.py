"""Session ids in addresses: whatever the system that made a session calls it, slashes and line breaks included."""

from starlette.convertors import PathConvertor, register_url_convertor


class SessionIdConvertor(PathConvertor):
    """A convertor for session ids: Starlette's own `path` ends at a line break, and its `str` at a slash."""

    regex = r"[\s\S]+"


register_url_convertor("session", SessionIdConvertor())

SESSION = "/sessions/{session_id:session}"
