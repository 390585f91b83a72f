"""An S3 server of its own process, for tests of a lake in a bucket."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import httpx

from tests.e2e.processes import Process, wait_until
from tests.servers.ports import free_port

SECRET = "a-key-nobody-may-see-9f2c"


@dataclass(frozen=True)
class Bucket:
    """An S3 server of its own process, with the bucket `lake`."""

    options: Mapping[str, str]

    @cached_property
    def client(self) -> Any:
        """A client of the server that is not the one under test. To make one takes a fifth of a second of processor."""
        return boto3.client(
            "s3",
            endpoint_url=self.options["AWS_ENDPOINT_URL"],
            region_name=self.options["AWS_REGION"],
            aws_access_key_id=self.options["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=self.options["AWS_SECRET_ACCESS_KEY"],
        )

    def keys(self, prefix: str) -> list[str]:
        """The names of all objects below a prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket="lake", Prefix=prefix)
        return [entry["Key"] for page in pages for entry in page.get("Contents", ())]


@contextmanager
def bucket_of(folder: Path) -> Iterator[Bucket]:
    """Start an S3 server, and end it."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    options = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    server = Process(["moto.server", "-H", "127.0.0.1", "-p", str(port)], folder / "s3.log", {})
    try:
        wait_until(lambda: _answers(url), "the start of the S3 server")
        bucket = Bucket(options)
        with closing(bucket.client) as client:
            client.create_bucket(Bucket="lake")
            yield bucket
    finally:
        server.stop()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/moto-api/data.json", timeout=2).is_success
    except httpx.HTTPError:
        return False
