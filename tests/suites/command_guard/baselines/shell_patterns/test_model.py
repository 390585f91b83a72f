"""The model of a command: what a program is called, what it is given, and which redirections write."""

import pytest

from suites.command_guard.baselines.shell_patterns.model import SEVERITY, Command, Redirect, Word


def command(*words: str) -> Command:
    return Command(tuple(map(Word, words)))


@pytest.mark.parametrize(
    ("words", "path", "name", "arguments"),
    [
        (("/usr/bin/cat", "-n", "x"), "/usr/bin/cat", "cat", ("-n", "x")),
        (("ls",), "ls", "ls", ()),
        ((), "", "", ()),
        (("./",), "./", "", ()),
    ],
)
def test_a_program_is_called_without_its_folder(
    words: tuple[str, ...], path: str, name: str, arguments: tuple[str, ...]
) -> None:
    given = command(*words)
    assert (given.path, given.name, given.arguments, given.texts) == (path, name, arguments, words)


@pytest.mark.parametrize(("operator", "writes"), [(">", True), ("2>>", True), ("<>", True), ("&>", True), ("<", False)])
def test_a_redirection_with_an_arrow_outwards_writes(operator: str, writes: bool) -> None:
    assert Redirect(operator, Word("file")).writes is writes


def test_a_block_is_graver_than_a_warning() -> None:
    assert SEVERITY["ALLOW"] < SEVERITY["WARN"] < SEVERITY["BLOCK"]
