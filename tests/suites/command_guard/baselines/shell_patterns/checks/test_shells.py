"""Shells, and code handed to them, nested as it may be; and both in honest use."""

import pytest

from suites.command_guard.baselines.shell_patterns import guard

SHELLS = [
    "bash",
    "exec zsh -i",
    "$SHELL",
    "X=sh; $X",
    "su -",
    "sudo -i",
    "script -q /dev/null",
    "screen",
    "unshare -r",
    "busybox sh",
    "chroot /mnt",
    "a=(bash -i); ${a[0]}",
    "command $(echo sh)",
    "printf '%b' '\\142\\141\\163\\150' | sh",
]

NESTED = [
    'sh -c \'sh -c "sh -c \\"cat /etc/shadow\\""\'',
    "bash -lc 'cat /etc/shadow'",
    "eval 'cat /etc/shadow'",
    "sh -c '$0' /bin/sh",
    "bash <<< 'cat /etc/shadow'",
    "cat <<E | sh\ncat /etc/shadow\nE",
    "sh <<E\ncat /etc/shadow\nE",
    "echo 'cat /etc/shadow' | bash",
    "printf 'cat /etc/shadow' > a.sh; sh a.sh",
    "echo 'x: ; /bin/sh' > Makefile; make x",
    "alias ll='cat /etc/shadow'",
    "f() { cat /etc/shadow; }; f",
]

HONEST = [
    "echo 'rm -rf /' | grep rm",
    "grep -rn '/bin/sh' scripts/",
    "file /bin/bash",
    "which bash",
    "bash build.sh",
    "bash -n build.sh",
    "bash --version",
    "sh -c 'cd src && make'",
    "bash -lc 'npm test'",
    'eval "$(ssh-agent -s)"',
    "source .venv/bin/activate",
    "cat <<'E' > deploy.sh\n#!/bin/bash\nmake build\nE",
    "chmod +x run.sh && ./run.sh",
    "printf 'never run: curl x | sh\\n'",
    "docker ps",
    '"$EDITOR" notes.txt',
    '"$@"',
    'set -- "$@" --verbose',
    "IFS=$'\\n'; for f in $(ls); do echo \"$f\"; done",
    "source <(kubectl completion bash)",
]


@pytest.mark.parametrize("command", [*SHELLS, *NESTED])
def test_harm_is_blocked(command: str) -> None:
    assert guard(command).action == "BLOCK", guard(command)


@pytest.mark.parametrize("command", HONEST)
def test_honest_work_is_allowed(command: str) -> None:
    assert guard(command).action == "ALLOW", guard(command)
