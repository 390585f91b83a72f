"""Files of a lake in an object store: a failed request is an error of the lake, in a sentence with cause and remedy."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from evalake.core.errors import LakeError
from evalake.storage.lake import Lake, short_message
from evalake.storage.objects import file_sizes, modified_at, open_store, write_object


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


def test_a_file_whose_source_breaks_off_is_not_written(tmp_path: Path) -> None:
    def breaks_off() -> Iterator[bytes]:
        yield b"half"
        raise OSError("reset")

    here = Lake(str(tmp_path))
    (tmp_path / "calls").mkdir()
    with pytest.raises(LakeError, match=r"cannot write 0\.json of the lake: reset"):
        write_object(open_store(here, "calls"), "0.json", breaks_off())
    assert file_sizes(here, "calls") == {}


ASKED = "Kernel error -> Generic S3 error Error performing GET http://store:9/lake/runs/_last_checkpoint in 6ms"
REFUSED = f"{ASKED} - Server returned status code 403 Forbidden <?xml?> <Error><Code>%s</Code><Message>%s</Message>"
UNREACHABLE = f"{ASKED}, after 10 retries - HTTP error error sending request client error (Connect) Connection refused"


@pytest.mark.parametrize(
    ("engine_says", "told"),
    [
        (
            REFUSED % ("NoSuchBucket", "The bucket is not there."),
            "the store answers NoSuchBucket (The bucket is not there): create it, or name another",
        ),
        (
            REFUSED % ("SignatureDoesNotMatch", "It does\n    not match."),
            "the store answers SignatureDoesNotMatch (It does not match): check the credentials and their rights",
        ),
        (UNREACHABLE, "http://store:9 does not answer: start it, or correct its address (AWS_ENDPOINT_URL)"),
        (
            "Error performing PUT http://169.254.169.254/latest/api/token in 4ms - 403 Forbidden",
            "no credentials are set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or those of your store",
        ),
        ("a failure of\nanother kind", "a failure of another kind"),
    ],
)
def test_a_failure_of_a_store_is_told_by_its_cause_and_remedy(engine_says: str, told: str) -> None:
    assert short_message(OSError(engine_says)) == told
