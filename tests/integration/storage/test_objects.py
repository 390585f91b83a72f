"""Files of a lake in an object store whose answers break off: a request fails as the lake's error, in a sentence."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evalake.core.errors import LakeError
from evalake.storage.lake import Lake
from evalake.storage.objects import modified_at


class _BrokenOff(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"<ListBucketResult>")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def lake() -> Iterator[Lake]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _BrokenOff)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "max_retries": "0",
    }
    yield Lake("s3://lake/broken", options)
    server.shutdown()
    server.server_close()


def test_an_answer_that_breaks_off_is_an_error_of_the_lake(lake: Lake) -> None:
    with pytest.raises(LakeError, match=r"^cannot look for a of calls in the lake s3://lake/broken: "):
        modified_at(lake, "calls", "a")
