"""What does not arrive in time is closed, whatever it is a part of, and keeps nobody else from being answered."""

import asyncio
import base64
import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from evalake.server.listening import Server
from evalake.server.processes import listen
from evalake.server.settings import Settings
from evalake.storage.lake import Lake
from tests.e2e.processes import wait_until
from tests.integration.server.conftest import TOKEN
from tests.integration.server.services import Service

ALLOWED = {"authorization": f"Bearer {TOKEN}"}
HEAD = f"POST /api/v1/scoring/batch HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n".encode()
HALVES = {
    "nothing": b"",
    "half a header": HEAD,
    "half a body": HEAD + b"content-length: 1000\r\n\r\n[",
    "half a chunk": HEAD + b"transfer-encoding: chunked\r\n\r\n100\r\n[",
}
UPGRADE = "host: 127.0.0.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
NO_HANDSHAKES = {
    "another method": f"POST /api/v1/ws HTTP/1.1\r\n{UPGRADE}content-length: 100\r\n\r\n".encode(),
    "many headers": f"GET /api/v1/ws HTTP/1.1\r\n{UPGRADE}".encode() + b"x: y\r\n" * 200 + b"\r\n",
    "a long header": f"GET /api/v1/ws HTTP/1.1\r\n{UPGRADE}x: {'y' * 20_000}\r\n\r\n".encode(),
}
PART = 65_536  # bytes
ANSWER = 1000 * PART
ATTACKERS = 200  # twice as many as the service has room for


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_what_is_half_sent_is_closed(guarded: Service, half: bytes) -> None:
    with _connect(guarded) as client:
        client.sendall(half)
        assert wait_until(lambda: _is_closed(client), "the end of the connection")


@pytest.mark.parametrize("half", [HALVES["half a header"] + b"x: ", HALVES["half a body"]], ids=["header", "body"])
def test_a_drip_gains_no_time(guarded: Service, half: bytes) -> None:
    def drips() -> bool:
        if _is_closed(client):
            return True
        client.send(b"1")
        return False

    with _connect(guarded) as client:
        client.sendall(half)
        assert wait_until(drips, "the end of the connection")  # long before the request would be whole


def test_many_half_sent_requests_keep_nobody_from_being_answered(guarded: Service) -> None:
    with ExitStack() as stack:
        halves = list(HALVES.values())
        attackers = [stack.enter_context(_connect(guarded)) for _ in range(ATTACKERS)]
        for number, attacker in enumerate(attackers):
            try:
                attacker.sendall(halves[number % len(halves)])
            except OSError:  # it had to make room already
                continue
        answers = [httpx.get(f"{guarded.url}/api/v1/status", headers=ALLOWED, timeout=600) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200] * 5
        wait_until(lambda: all(map(_is_closed, attackers)), "the end of all half-sent requests")


def test_who_was_let_in_keeps_the_connection_however_many_strangers_come(guarded: Service) -> None:
    """One of a WebSocket, for others are closed where their client asks nothing for two seconds."""
    token = base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")

    async def ask() -> str | bytes:
        async with guarded.listen(subprotocols=["evalake", f"bearer.{token}"]) as user:
            with ExitStack() as stack:
                for _ in range(ATTACKERS):
                    stack.enter_context(_connect(guarded))
                await user.send('{"type": "ping"}')
                return await user.recv()

    assert json.loads(asyncio.run(ask())) == {"type": "pong"}


@pytest.mark.parametrize("request_", NO_HANDSHAKES.values(), ids=NO_HANDSHAKES)
def test_what_is_no_handshake_of_a_websocket_is_answered_and_closed(guarded: Service, request_: bytes) -> None:
    with _connect(guarded) as client:
        client.sendall(request_)
        client.settimeout(60)
        answer = b""
        while part := client.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_requests_that_do_not_wait_for_their_answers_are_not_kept(guarded: Service) -> None:
    with _connect(guarded) as client:
        client.sendall(b"GET /icon.svg HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 100)
        answers = b""
        try:
            while part := client.recv(65_536):
                answers += part
        except ConnectionError:
            pass
    assert answers.count(b"HTTP/1.1 200 OK") == 1


def test_an_answer_that_nobody_reads_is_given_up(tmp_path: Path) -> None:
    with endless(tmp_path, 0.5) as (address, connections, begun), socket.create_connection(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert begun.wait(600)
        assert wait_until(lambda: not connections, "the end of the connection")


def test_an_answer_that_is_read_is_given_whole(tmp_path: Path) -> None:
    with endless(tmp_path, 600.0) as ((host, port), *_):
        assert len(httpx.get(f"http://{host}:{port}/", timeout=600).content) == ANSWER


@contextmanager
def endless(folder: Path, patience_seconds: float) -> Iterator[tuple[Any, set[Any], threading.Event]]:
    """Where a server with a long answer and so much patience is, its connections, and whether it answers."""
    begun = threading.Event()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(ANSWER // PART):
            more = number + 1 < ANSWER // PART
            await send({"type": "http.response.body", "body": bytes(PART), "more_body": more})

    (folder / "evalake.toml").write_text(f"[service]\nrequest_seconds = {patience_seconds}\nconnections = 10\n")
    settings = Settings(lake=Lake(str(folder / "lake")), configuration_file=str(folder / "evalake.toml"))
    with listen("127.0.0.1", 0) as listener:
        server = Server(answer, settings, listener, lambda _: None, lifespan="off")
        thread = threading.Thread(target=server.run)
        thread.start()
        wait_until(lambda: server.started, "the start of the server")
        yield listener.getsockname(), server.server_state.connections, begun
        server.should_exit = True
        thread.join()


def _connect(service: Service) -> socket.socket:
    return socket.create_connection(("127.0.0.1", httpx.URL(service.url).port or 0), timeout=600)


def _is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed; waits a moment, so that asking again and again is no haste."""
    readable, _, _ = select.select([connection], [], [], 0.05)
    try:
        return bool(readable) and connection.recv(65_536) == b""
    except OSError:
        return True
