"""The server's process ends with the standard input that its command holds."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.cli.command import ROOT


def test_who_reads_the_messages_of_a_command_does_not_wait_for_its_server_to_end() -> None:
    code = """
import signal
from service.lifeline import follow_parent
signal.signal(signal.SIGTERM, lambda *_: None)  # as a server that has still events to keep
follow_parent(600, silently=True)
while True:
    signal.pause()
"""
    words = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, stdin=pipe, stderr=pipe, text=True, start_new_session=True) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        server.stdin.close()  # as when the command ends
        assert server.stderr.read() == ""
        assert server.poll() is None
        server.kill()


def test_nothing_is_made_for_a_command_that_has_ended_already(tmp_path: Path) -> None:
    """One that was mistyped, say: its server would go on for seconds of processor."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        done = subprocess.run(
            [sys.executable, "-m", "service.local.server", str(listener.fileno()), "--temporary"],
            cwd=ROOT,
            env={**os.environ, "PREFECT_HOME": str(tmp_path / "home")},
            stdin=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            capture_output=True,
            start_new_session=True,
        )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, b"", b"")
    assert list(tmp_path.rglob("*.db")) == []
