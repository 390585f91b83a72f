"""A stand-in for the API of today's TARSy: sessions that are put into it, behind a bearer token."""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

TOKEN = "token of the tests"
CREATED = "2026-05-04T08:{:02}:00Z"


class TarsyApi:
    """Serves bodies by path, and the list of sessions page by page; notes each path that was asked for."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.bodies: dict[str, Any] = {}
        self.asked: list[str] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                api.asked.append(self.path)
                status, body = api.answer(self.path, self.headers.get("Authorization"))
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def put(self, session_id: str, minute: int, status: str = "completed", **fields: Any) -> None:
        """Add a session of one call, in place of an earlier one of that id."""
        over = {"completed_at": CREATED.format(minute + 1)} if status == "completed" else {"completed_at": None}
        item = {"id": session_id, "status": status, "created_at": CREATED.format(minute), **over, **fields}
        self.items = [*(each for each in self.items if each["id"] != session_id), item]
        agent = {"execution_id": "e", "agent_name": "a", "llm_interactions": [{"id": f"l-{session_id}"}]}
        stage = {"stage_id": "st", "stage_name": "look", "stage_type": "investigation", "executions": [agent]}
        said = [{"role": "user", "content": "disk full"}, {"role": "assistant", "content": f"{session_id} is full"}]
        path = f"/api/v1/sessions/{session_id}"
        self.bodies |= {
            path: {**item, "alert_data": f"disk of {session_id}", "chain_id": "chain", "stages": []},
            f"{path}/trace": {"stages": [stage], "session_interactions": []},
            f"{path}/timeline": [],
            f"{path}/trace/llm/l-{session_id}": {
                "id": f"l-{session_id}", "interaction_type": "iteration", "created_at": CREATED.format(minute),
                "conversation": said,
            },
        }  # fmt: skip

    def answer(self, path: str, authorization: str | None) -> tuple[int, Any]:
        """Answer a request with status and body."""
        parts = urlsplit(path)
        asked: Mapping[str, list[str]] = parse_qs(parts.query)
        if authorization != f"Bearer {TOKEN}":
            return 401, {"message": "no"}
        if parts.path != "/api/v1/sessions":
            return (200, self.bodies[parts.path]) if parts.path in self.bodies else (404, {"message": "no"})
        since, page = asked.get("start_date", [""])[0], int(asked["page"][0])
        found = sorted(
            (each for each in self.items if each["created_at"] >= since), key=lambda each: each["created_at"]
        )
        pages = [found[start : start + 2] for start in range(0, len(found), 2)] or [[]]
        return 200, {"sessions": pages[page - 1], "pagination": {"page": page, "total_pages": len(pages)}}
