"""Languages: each program's is known, and code that runs commands is told from code that computes."""

import pytest

from suites.command_guard.baselines.shell_patterns.rules.languages import INTERPRETERS, LANGUAGES, TYPED_ESCAPE

RUNS = [
    ("python", "import os; os.system('id')"),
    ("python", "__import__('subprocess')"),
    ("perl", "exec '/bin/sh'"),
    ("ruby", "`id`"),
    ("php", "system('id');"),
    ("node", "require('child_process').exec('id')"),
    ("lua", "os.execute('id')"),
    ("tcl", "exec id"),
    ("awk", 'BEGIN {system("id")}'),
    ("sed", "1e id"),
    ("vim", ":!id"),
    ("ed", "!id"),
    ("emacs", '(shell-command "id")'),
    ("gdb", "!id"),
    ("sql", "\\! id"),
    ("scheme", '(system "id")'),
    ("r", "system('id')"),
    ("julia", "run(`id`)"),
    ("tex", "\\write18{id}"),
    ("m4", "syscmd(id)"),
    ("dc", "!id"),
    ("make", "$(shell id)"),
    ("puppet", "exec { id: }"),
]
COMPUTES = [
    ("python", "import json; print(json.dumps([1]))"),
    ("perl", "print join ',', sort @x"),
    ("ruby", "puts [1, 2].sum"),
    ("node", "console.log(1 + 1)"),
    ("lua", "print(os.time())"),
    ("awk", "{s += $1} END {print s}"),
    ("sed", "s/e/f/g"),
    ("vim", ":%s/a/b/g"),
    ("sql", "select count(*) from runs"),
    ("r", "mean(c(1, 2))"),
    ("dc", "2 3 + p"),
    ("m4", "define(a, b)"),
]


def test_every_program_has_a_language_that_is_known_and_each_language_a_program() -> None:
    assert {language for language, _ in INTERPRETERS.values()} == set(LANGUAGES)
    options = {option for _, flags in INTERPRETERS.values() for option in flags.split()}
    assert {option for option in options if option[0] not in "-+"} == {"ev", "eval", "php-eval"}


@pytest.mark.parametrize(("language", "code"), RUNS)
def test_code_that_runs_a_command_is_seen(language: str, code: str) -> None:
    assert LANGUAGES[language].executes.search(code)


@pytest.mark.parametrize(("language", "code"), COMPUTES)
def test_code_that_computes_is_let_be(language: str, code: str) -> None:
    known = LANGUAGES[language]
    assert not any(each.search(code) for each in (known.executes, known.connects, known.fetches))


@pytest.mark.parametrize(("language", "code"), [("python", "socket.socket()"), ("awk", '"/inet/tcp/0/h/1"')])
def test_code_that_connects_is_told_apart(language: str, code: str) -> None:
    connects = LANGUAGES[language].connects
    assert connects is not None
    assert connects.search(code)


@pytest.mark.parametrize(("typed", "asks"), [("!/bin/sh", True), (":shell", True), ("\\! id", True), (":wq", False)])
def test_a_line_typed_into_a_program_may_ask_for_a_shell(typed: str, asks: bool) -> None:
    assert bool(TYPED_ESCAPE.search(f"vim x\n{typed}\n")) is asks
