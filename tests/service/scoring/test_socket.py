"""One client's connection: what makes no sense is answered, and whose page may open one."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.service.services import Service


@pytest.mark.parametrize(
    "message",
    ["", "{", "[]", "null", "1", '"x"', '{"type": "subscribe"}', '{"type": "subscribe", "channel": "runs"}',
     '{"type": "subscribe", "channel": "session:"}', '{"type": "subscribe", "channel": ["sessions"]}',
     '{"type": "shutdown"}', "[" * 4000, "x" * 5000, b"\xff\x00"],
)  # fmt: skip
def test_what_makes_no_sense_is_answered_with_an_error(service: Service, message: str | bytes) -> None:
    async def send() -> tuple[dict[str, Any], dict[str, Any]]:
        async with connect(service.socket_url) as socket:
            await socket.send(message)
            error = json.loads(await socket.recv())
            await socket.send('{"type": "ping"}')
            return error, json.loads(await socket.recv())

    error, pong = asyncio.run(send())
    assert error["type"] == "error"
    assert error["detail"]
    assert pong == {"type": "pong"}


def test_a_page_of_another_site_may_not_listen(service: Service) -> None:
    async def attempt() -> int:
        with pytest.raises(InvalidStatus) as refused:
            async with connect(service.socket_url, origin="https://elsewhere.example"):  # type: ignore[arg-type]
                pass
        return refused.value.response.status_code

    assert asyncio.run(attempt()) == 401
