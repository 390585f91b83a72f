"""Listening sockets: a port has one listener, whoever else asks for it in whatever way."""

import os
import socket

import pytest

from core.errors import UsageError
from service.sockets import address_of, inherited, listen

REUSE = ([], [socket.SO_REUSEADDR], [socket.SO_REUSEPORT], [socket.SO_REUSEADDR, socket.SO_REUSEPORT])


def test_a_port_that_is_taken_is_refused_and_its_process_named() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {port}: .*process {os.getpid()} "):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("options", REUSE, ids=["plain", "address", "port", "both"])
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_nobody_else_listens_at_our_port(host: str, options: list[int]) -> None:
    with listen("127.0.0.1", 0) as ours, socket.socket() as theirs:
        for option in options:
            theirs.setsockopt(socket.SOL_SOCKET, option, 1)
        with pytest.raises(OSError, match="in use"):
            _take(theirs, host, ours.getsockname()[1])


@pytest.mark.parametrize("options", REUSE, ids=["plain", "address", "port", "both"])
def test_we_do_not_listen_where_another_does(options: list[int]) -> None:
    with socket.socket() as theirs:
        for option in options:
            theirs.setsockopt(socket.SOL_SOCKET, option, 1)
        _take(theirs, "127.0.0.1", 0)
        with pytest.raises(UsageError, match="in use"):
            listen("127.0.0.1", theirs.getsockname()[1])


def test_an_inherited_socket_is_the_same_one() -> None:
    with listen("::1", 0) as ours, inherited(str(os.dup(ours.fileno()))) as again:
        assert address_of(again) == address_of(ours)
        assert address_of(ours).startswith("http://[::1]:")


def _take(listener: socket.socket, host: str, port: int) -> None:
    listener.bind((host, port))
    listener.listen()
