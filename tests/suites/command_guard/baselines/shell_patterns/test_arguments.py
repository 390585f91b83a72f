"""Commands behind wrappers, and the wrappers in honest use."""

import pytest

from suites.command_guard.baselines.shell_patterns import guard

WRAPPED = [
    "sudo -u root env X=1 timeout -k 5 5 nice -n 3 bash",
    "flock -u / /bin/sh",
    "xargs -a /dev/null sh",
    "watch -n 1 'cat /etc/shadow'",
    "find . -name x -exec /bin/sh \\; -quit",
    "find . -exec cat /etc/shadow \\;",
    "ip netns exec ns1 sh",
    "git submodule foreach 'cat /etc/shadow'",
    "su -c 'cat /etc/shadow' www",
    "env -S 'bash -p'",
    "echo /etc/shadow | xargs cat",
    "printf '/etc/shadow\\0' | xargs -0 cat",
    "echo /etc/shadow | xargs -I% cat %",
    "find /etc -name shadow -exec cat {} +",
    "find /etc -name 'shad*' | xargs cat",
    "find /etc -type f -name shadow -print0 | xargs -0 -I{} cat {}",
    "echo /etc/shadow | xargs -I{} sh -c 'cat {}'",
    "xargs cat <<< /etc/shadow",
    "find /etc -name sudoers -exec sh -c 'cat {}' \\;",
]

HONEST = [
    "timeout 10 make test",
    "find . -name '*.py' -exec grep -n import {} +",
    "find . -print0 | xargs -0 rm -f",
    "ls | xargs -I{} mv {} {}.bak",
    "env FOO=1 ./run",
    "docker exec -it web sh",
    "tmux ls",
    "script -q -c 'make test' build.log",
    "echo main.py | xargs cat",
    "find /etc -name '*.conf' | xargs grep -l ssl",
    "find /etc -name shadow",
    "cat urls.txt | xargs -n1 echo",
]

DUAL = [
    "sudo apt-get install -y nginx",
    "timeout 5 /tmp/tool",
]


@pytest.mark.parametrize("command", WRAPPED)
def test_harm_is_blocked(command: str) -> None:
    assert guard(command).action == "BLOCK", guard(command)


@pytest.mark.parametrize("command", HONEST)
def test_honest_work_is_allowed(command: str) -> None:
    assert guard(command).action == "ALLOW", guard(command)


@pytest.mark.parametrize("command", DUAL)
def test_dual_use_is_warned_about(command: str) -> None:
    assert guard(command).action == "WARN", guard(command)
