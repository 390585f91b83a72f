"""Connections: reverse and bind shells, files sent away, payloads fetched."""

from __future__ import annotations

import posixpath
import re
from typing import Final

from suites.command_guard.baselines.shell_patterns.arguments import joined, operands, option_values, program
from suites.command_guard.baselines.shell_patterns.model import Command, Decision
from suites.command_guard.baselines.shell_patterns.rules import network, paths, programs
from suites.command_guard.baselines.shell_patterns.scope import Scope, block, warn

_HARMLESS_INPUT: Final = programs.names("echo printf true : yes sleep date")
_COPIERS: Final = programs.names("scp rsync sftp tftp ftp smbclient")


def uses_socket_device(command: Command, scope: Scope) -> Decision | None:
    """Judge uses of the shell's `/dev/tcp`."""
    texts = [redirect.target.text for redirect in command.redirects]
    if program(command) not in programs.MENTIONING:
        texts += command.arguments
    if any(network.DEVICE.search(text) for text in texts):
        if any(network.LOOPBACK.search(text) for text in texts):
            return warn("socket-device", "It opens a connection to this machine through the shell.", 0.5)
        return block("socket-device", "It opens a network connection through the shell's own sockets.", 0.93)
    return None


def serves(command: Command, scope: Scope) -> Decision | None:
    """Judge servers started from the command line."""
    name = program(command)
    text = joined(command)
    for server, pattern, what in network.SERVERS:
        if name == server and re.search(pattern, text):
            if network.LOOPBACK.search(text):
                return warn("server", f"`{name}` serves on this machine only.", 0.5)
            return block("server", f"`{name}` {what}.", 0.8)
    return None


def joins_socket(command: Command, scope: Scope) -> Decision | None:
    """Judge programs that join a stream, a file or another program to a socket."""
    name = program(command)
    text = joined(command)
    pattern = network.EXECUTES.get(name)
    if pattern is not None and pattern.search(text):
        return block("network-shell", f"`{name}` attaches a program to a connection.", 0.95)
    tls = name == "openssl" and network.TLS_CONNECTORS.search(text)
    if not tls and name not in network.RAW_CONNECTORS:
        return None
    if network.PORT_CHECK.search(text) and name != "socat":
        return None
    if network.LISTENS.search(text) and not tls:
        return block("listener", f"`{name}` waits for a connection.", 0.8)
    if any(
        redirect.writes and "&" not in redirect.operator and not redirect.target.text.startswith("/dev/")
        for redirect in command.redirects
    ):
        return block("raw-download", f"`{name}` saves what a connection sends.", 0.85)
    if any(not redirect.writes and redirect.target.text != "/dev/null" for redirect in command.redirects):
        return block("raw-upload", f"`{name}` sends a file over a connection.", 0.88)
    sources = [program(part) for part in command.upstream]
    if sources and not all(source in _HARMLESS_INPUT for source in sources):
        return block("raw-upload", f"`{name}` sends another program's output over a connection.", 0.85)
    if name == "socat" and re.search(r"(?:^|\s|,)(?:-u|-U|open:|file:|create:|gopen:)", text, re.IGNORECASE):
        return block("raw-transfer", "`socat` joins a file to a connection.", 0.8)
    if re.search(r"(?:127\.0\.0\.1|localhost)", text) or (
        tls and (sources or any(r.target.text == "/dev/null" for r in command.redirects))
    ):
        return None
    return warn("raw-connection", f"`{name}` opens a raw connection.", 0.6)


def remember_fetched(command: Command, scope: Scope) -> None:
    """Keep the names of the files that the command saves, for the commands after it."""
    if program(command) not in network.FETCHERS or network.LOOPBACK.search(joined(command)):
        return
    saved = [redirect.target.text for redirect in command.redirects if redirect.writes]
    saved += option_values(command.arguments, network.SAVES_AS)
    saved += [text.rsplit("/", 1)[-1] for text in command.arguments if network.URL.fullmatch(text)]
    scope.fetched |= {posixpath.normpath(name) for name in saved[:32] if name}


def transfers(command: Command, scope: Scope) -> Decision | None:
    """Judge transfers of files, sent or fetched, with the usual programs."""
    name = program(command)
    if name not in network.FETCHERS:
        return None
    text = joined(command)
    sources = [argument for part in command.upstream for argument in part.arguments]
    sources += [argument for word in command.words for part in word.inner for argument in part.arguments]
    local = bool(network.LOOPBACK.search(text)) and not network.RAW_ADDRESS.search(text)
    arguments = [*sources, *command.arguments]
    if not local and any(paths.ACCOUNTS.search(source) or paths.KEY_FOLDER.search(source) for source in arguments):
        return block("exfiltration", f"`{name}` sends a list of accounts, a history or keys away.", 0.9)
    for word in command.words:
        if (
            word.inner
            and network.URL.search(word.text)
            and any(program(part) in programs.READERS for part in word.inner)
        ):
            return block("exfiltration", f"`{name}` puts the content of a file into an address.", 0.85)
    if local:
        return None
    raw = bool(network.RAW_ADDRESS.search(text))
    if name in {"curl", "wget", "http", "https", "xh"} and network.UPLOADS.search(text):
        if raw:
            return block("upload", f"`{name}` sends a file to a bare address.", 0.75)
        return warn("upload", f"`{name}` sends a file away.", 0.55)
    if name in _COPIERS and any(network.REMOTE.search(operand) for operand in operands(command.arguments)):
        return warn("remote-copy", f"`{name}` copies between machines.", 0.5)
    saved = name not in {"curl", "links", "lynx", "w3m", "http", "https", "xh"} or bool(network.SAVES.search(text))
    saved = saved or any(redirect.writes and redirect.target.text != "/dev/null" for redirect in command.redirects)
    if saved and network.URL.search(text):
        if raw:
            return block("payload-download", f"`{name}` saves a file from a bare address.", 0.75)
        return warn("download", f"`{name}` saves a file from the network.", 0.5)
    return None
