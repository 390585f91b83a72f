"""Patterns of network programs: addresses, this machine, uploads and servers."""

import re

import pytest

from suites.command_guard.baselines.shell_patterns.rules import network


@pytest.mark.parametrize(
    ("text", "raw", "local"),
    [
        ("http://192.0.2.1/x", True, False),
        ("http://0xc0000201/x", True, False),
        ("http://3221225985/x", True, False),
        ("user@198.51.100.7", True, False),
        ("http://127.0.0.1:8080/", False, True),
        ("http://localhost/x", False, True),
        ("http://[::1]/x", False, True),
        ("http://localhost.example.org/", False, False),
        ("https://example.org/1.2.3.4.tgz", False, False),
    ],
)
def test_bare_addresses_are_told_from_names_and_from_this_machine(text: str, raw: bool, local: bool) -> None:
    assert bool(network.RAW_ADDRESS.search(text)) is raw
    assert bool(network.LOOPBACK.search(text)) is local


@pytest.mark.parametrize(
    ("operand", "remote"),
    [("user@host:file", True), ("host:", True), ("rsync://h/x", True), ("./a:b", False), ("https://h/x", False)],
)
def test_a_place_on_another_machine_is_known_by_its_colon(operand: str, remote: bool) -> None:
    assert bool(network.REMOTE.search(operand)) is remote


@pytest.mark.parametrize(
    ("arguments", "uploads"),
    [
        ("-T file https://h", True),
        ("-d @file https://h", True),
        ("-F f=@file https://h", True),
        ("--post-file=x https://h", True),
        ("-d name=value https://h", False),
        ("-o file https://h", False),
    ],
)
def test_what_sends_a_file_is_told_from_what_sends_a_word(arguments: str, uploads: bool) -> None:
    assert bool(network.UPLOADS.search(arguments)) is uploads


@pytest.mark.parametrize(
    ("name", "arguments", "runs"),
    [
        ("nc", "-e /bin/sh h 1", True),
        ("ncat", "--exec=/bin/sh h 1", True),
        ("nc", "-zv h 1", False),
        ("socat", "tcp:h:1 EXEC:sh", True),
        ("socat", "tcp:h:1 -", False),
    ],
)
def test_a_program_behind_a_connection_is_seen(name: str, arguments: str, runs: bool) -> None:
    assert bool(network.EXECUTES[name].search(arguments)) is runs


def test_every_server_says_what_it_does() -> None:
    for name, pattern, what in network.SERVERS:
        assert re.compile(pattern)
        assert f"`{name}` {what}.".count(" ") > 2


def test_the_device_of_the_shell_is_a_path() -> None:
    assert network.DEVICE.search("/dev/tcp/h/1")
    assert not network.DEVICE.search("/dev/tty")
