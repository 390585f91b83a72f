"""The WebSocket: one client's connection to the hub."""

import asyncio
import json
from typing import Any

from fastapi import APIRouter, WebSocket
from starlette.websockets import WebSocketDisconnect

from service.auth import subprotocol
from service.scoring.app_state import app_state_of
from service.scoring.events import Listener

router = APIRouter()

TOO_SLOW = 1013
LONGEST_MESSAGE = 4096  # characters


@router.websocket("/api/v1/ws")
async def listen(socket: WebSocket) -> None:
    """Let a client subscribe, and send it events until it leaves or falls behind."""
    app_state = app_state_of(socket)
    await socket.accept(subprotocol(socket))
    hub = app_state.monitor.hub
    listener = hub.join()
    work = [
        asyncio.create_task(_send(socket, listener)),
        asyncio.create_task(_receive(socket, lambda message: hub.receive(listener, message))),
        asyncio.create_task(listener.dropped.wait()),
    ]
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hub.leave(listener)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
    if listener.dropped.is_set():
        await _drop(socket)


async def _send(socket: WebSocket, listener: Listener) -> None:
    while True:
        await socket.send_text(json.dumps(await listener.waiting.get(), ensure_ascii=True))


async def _receive(socket: WebSocket, take: Any) -> None:
    try:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            take(_decoded(message.get("text")))
    except WebSocketDisconnect:
        return


def _decoded(text: str | None) -> Any:
    if text is None or len(text) > LONGEST_MESSAGE:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


async def _drop(socket: WebSocket) -> None:
    """Close the connection of a client that does not read; wait a second for that at most."""
    try:
        await asyncio.wait_for(socket.close(TOO_SLOW, "too slow: connect and subscribe again"), timeout=1.0)
    except (TimeoutError, RuntimeError):
        return
