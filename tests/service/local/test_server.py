"""The server's process ends with the standard input that its command holds."""

import subprocess
import sys

from tests.cli.command import ROOT


def test_who_reads_the_messages_of_a_command_does_not_wait_for_its_server_to_end() -> None:
    ending = "from service.local.server import _end_with_input\n_end_with_input(Server())\nsignal.pause()"
    words = [sys.executable, "-c", f"import signal\nclass Server: pass\n{ending}"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, stdin=pipe, stderr=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        server.stdin.close()  # as when the command ends
        assert server.stderr.read() == ""
        assert server.poll() is None
        server.kill()
