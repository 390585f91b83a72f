"""What `echo` and `printf` print is known without running them: bash itself is the reference."""

import subprocess

import pytest

from suites.command_guard.baselines.shell_patterns.parse import parse
from suites.command_guard.baselines.shell_patterns.printing import printed, unescaped


@pytest.mark.parametrize(
    "command",
    [
        "echo a b",
        "echo -e 'a\\tb\\x41\\n'",
        "printf 'cat /etc/sha%s' dow",
        "printf '%s-%d%%' a 7",
        "printf '%2s|%-1s|' xy z",
        "printf '\\143\\x61t'",
        "printf",
    ],
)
def test_bash_prints_the_same(command: str) -> None:
    (parsed,) = parse(command).commands
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True).stdout
    assert (printed(parsed) or "").split() == shown.split()


@pytest.mark.parametrize(("text", "plain"), [("\\x", "x"), ("\\u41", "A"), ("\\101", "A"), ("\\", "\\"), ("\\q", "q")])
def test_an_escape_stands_for_a_character(text: str, plain: str) -> None:
    assert unescaped(text) == plain


def test_what_other_programs_print_is_unknown() -> None:
    (parsed,) = parse("cat notes.txt").commands
    assert printed(parsed) is None
