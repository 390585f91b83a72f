"""What goes over the pool of connections, and what is not read from it."""

import asyncio
import json
from typing import Any

import psutil
import pytest

from evalake.models.client import Client
from evalake.models.failures import AttemptFailed
from evalake.models.request import Failure
from evalake.models.transport import Answer, Asked, Timing, Transport
from tests.integration.models.support import PROVIDERS, QUICK, answer, answers, configuration, request
from tests.servers.model_server import ModelServer
from tests.servers.recorder import recorder


@pytest.mark.parametrize(
    "fault", [{"kind": "huge"}, {"kind": "gzip_bomb", "megabytes": 50}], ids=["reply of 50 MB", "gzip bomb"]
)
def test_replies_larger_than_any_model_writes_are_cut_off_and_not_kept(
    model_server: ModelServer, fault: dict[str, object]
) -> None:
    model_server.rule(faults=[{**fault, "times": 0}])
    with Client(configuration(model_server, attempts=1, concurrency=1), backoff_seconds=QUICK) as client:
        answer(client, request("first", f"{PROVIDERS[0]}/m"))
        before = psutil.Process().memory_info().rss
        outcomes = answers(client, [request(f"large {number}", f"{PROVIDERS[0]}/m") for number in range(8)])
    said = {(outcome.kind, outcome.message) for outcome in outcomes.values() if isinstance(outcome, Failure)}
    assert said == {("malformed_response", "the reply is larger than 33,554,432 bytes")}
    assert psutil.Process().memory_info().rss - before < 4 * 32 * 2**20


async def _post(address: str, path: str = "/v1", **more: Any) -> tuple[Answer, Timing]:
    transport, timing = Transport(), Timing()
    try:
        return await transport.post(Asked(f"{address}{path}", {"X-Key": "k"}, b"{}"), timing, **more), timing
    finally:
        await transport.close()


def test_what_was_sent_when_is_measured_and_what_came_is_told() -> None:
    heard: list[int] = []
    with recorder() as server:
        server.answer({"said": "so"})
        answered, timing = asyncio.run(_post(server.address, on_data=lambda: heard.append(1)))
    assert (answered.status, json.loads(answered.body)) == (200, {"said": "so"})
    assert server.sent[0].headers["x-key"] == "k"
    assert timing.started <= timing.connected <= timing.sent <= timing.first_byte <= timing.ended
    assert heard


def test_a_redirect_is_an_answer_and_takes_the_key_nowhere() -> None:
    with recorder() as server, recorder() as elsewhere:
        server.answer(b"", 307, {"Location": f"{elsewhere.address}/v1"})
        answered, _ = asyncio.run(_post(server.address))
    assert answered.status == 307
    assert elsewhere.sent == []


def test_an_answer_larger_than_what_is_read_is_malformed() -> None:
    with recorder() as server:
        server.answer(b"x" * 100)
        with pytest.raises(AttemptFailed, match="larger than 99 bytes") as failed:
            asyncio.run(_post(server.address, largest=99))
    assert failed.value.kind == "malformed_response"


def test_what_has_not_happened_took_no_known_time() -> None:
    assert (Timing().connect_ms, Timing().first_byte_ms, Timing().latency_ms) == (None, None, None)
