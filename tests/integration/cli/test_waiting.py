"""What a person reads while a command begins."""

import sys
from io import StringIO

import pytest

from evalake.cli.terminal import say_first_step


class Terminal(StringIO):
    """A stream on which a person looks."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", err := Terminal())
    say_first_step("run")
    assert err.getvalue() == "reading the suite, its samples and the ledger …\n"


def test_a_file_gets_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", file := StringIO())
    say_first_step("run")
    assert file.getvalue() == ""


def test_a_command_that_answers_within_a_second_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", err := Terminal())
    say_first_step("runs")
    assert err.getvalue() == ""
