"""What a person reads while a command begins."""

import sys
from io import StringIO

import pytest

from cli.waiting import ERASE, say_what_is_done


class Terminal(StringIO):
    """A stream on which a person looks."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_is_said_until_something_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    say_what_is_done("runs")
    assert err.getvalue() == "evalake runs: opening the lake …"
    for text in ("run_id\n", "import-1\n"):
        sys.stdout.write(text)
    assert (out.getvalue(), err.getvalue()) == ("run_id\nimport-1\n", f"evalake runs: opening the lake …{ERASE}")


def test_a_file_gets_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", file := StringIO())
    say_what_is_done("runs")
    assert file.getvalue() == ""
