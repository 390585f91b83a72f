"""Options and settings that run commands: tables say which, and honest ones are left alone."""

import re

import pytest

from suites.command_guard.baselines.shell_patterns.rules import options


def test_the_table_of_command_options_is_of_programs_and_their_options() -> None:
    assert options.COMMAND_OPTIONS["tar"] >= {"--to-command", "-I"}
    assert options.COMMAND_OPTIONS["scp"] == options.COMMAND_OPTIONS["sftp"]
    assert all(name == name.strip() and values for name, values in options.COMMAND_OPTIONS.items())


@pytest.mark.parametrize(
    ("argument", "key", "value"),
    [
        ("ProxyCommand=nc h 1", "ProxyCommand", "nc h 1"),
        ("core.pager=sh", "core.pager", "sh"),
        ("alias.x=!id", "alias.x", "!id"),
        ("APT::Update::Pre-Invoke::=id", "APT::Update::Pre-Invoke::", "id"),
        ("core.editor", "core.editor", None),
    ],
)
def test_a_setting_that_runs_something_is_read_with_its_value(argument: str, key: str, value: str | None) -> None:
    match = options.SETTINGS.search(argument)
    assert match is not None
    assert (match["key"], match["value"]) == (key, value)


@pytest.mark.parametrize("argument", ["user.name=ann", "StrictHostKeyChecking=no", "core.autocrlf=input"])
def test_other_settings_run_nothing(argument: str) -> None:
    assert options.SETTINGS.search(argument) is None


@pytest.mark.parametrize(
    ("name", "runs"), [("MY_PAGER", True), ("DEPLOY_COMMAND", True), ("HOME", False), ("COMMANDS", False)]
)
def test_variables_that_hold_commands_have_usual_endings(name: str, runs: bool) -> None:
    assert bool(options.RUNS_BY_NAME.match(name)) is runs


@pytest.mark.parametrize(
    ("name", "arguments", "dangerous"),
    [
        ("chmod", "u+s /bin/bash", True),
        ("chmod", "4755 x", True),
        ("chmod", "755 x", False),
        ("rm", "-rf /", True),
        ("rm", "-rf ./build", False),
        ("crontab", "-l", False),
        ("crontab", "evil", True),
        ("docker", "run -v /:/host x", True),
        ("docker", "run -v /home/me:/x x", False),
    ],
)
def test_what_needs_no_other_look_is_told_from_honest_use(name: str, arguments: str, dangerous: bool) -> None:
    found = [what for known, pattern, what in options.DANGEROUS if name in known and pattern.search(arguments)]
    assert bool(found) is dangerous


def test_every_pattern_can_be_compiled() -> None:
    assert all(re.compile(pattern) for pattern in (*options.UNUSUAL.values(), *options.OPENS_SHELL.values()))
