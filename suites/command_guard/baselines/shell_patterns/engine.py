"""Tries the checks on every command of a text, in order, and keeps the gravest answer."""

from __future__ import annotations

import re
from typing import Final

from suites.command_guard.baselines.shell_patterns.arguments import layers, operands, program
from suites.command_guard.baselines.shell_patterns.checks import execution, files, network, shells
from suites.command_guard.baselines.shell_patterns.lexical import lexical
from suites.command_guard.baselines.shell_patterns.model import SEVERITY, Command, Decision
from suites.command_guard.baselines.shell_patterns.parse import parse
from suites.command_guard.baselines.shell_patterns.rules import languages, paths, programs
from suites.command_guard.baselines.shell_patterns.rules.network import DEVICE
from suites.command_guard.baselines.shell_patterns.scope import MAX_TEXT, Check, Scope, block, warn

CHECKS: Final[tuple[Check, ...]] = (
    network.uses_socket_device,
    files.reads_secret,
    files.writes_place,
    network.joins_socket,
    network.serves,
    shells.evaluates,
    shells.starts_shell,
    shells.wraps_shell,
    execution.sets_environment,
    execution.runs_inline_code,
    execution.option_runs_command,
    execution.dangerous_invocation,
    network.transfers,
    execution.handed_shell,
    execution.uses_planted_file,
)

_HARMLESS: Final = Decision("ALLOW", "No rule sees harm in this command.", 0.75, "no-match")
_FORK_BOMB: Final = re.compile(r"(?P<name>[\w:.]{1,20})\s*\(\)\s*\{\s*(?P=name)\s*\|\s*(?P=name)\s*&\s*\}")


def guard(command: str) -> Decision:
    """Judge one command line (or several lines) as a shell would run it.

    Pure and deterministic: nothing is run, read or asked. Never raises: text that cannot be parsed is judged by a
    conservative lexical view, and text beyond the limits is at least WARN.
    """
    text = command.replace("\x00", "")  # as a shell does
    decision = _judge(text, Scope(_judge))
    if (joined := text.replace("\\\n", "")) != text:  # lines go on within words too, but not in comments: judge both
        decision = _graver(decision, _judge(joined, Scope(_judge)))
    return decision


def _judge(text: str, scope: Scope) -> Decision:
    if _FORK_BOMB.search(text[:MAX_TEXT]):
        return block("fork-bomb", "It starts itself until the machine is full.", 0.97)
    script = parse(text, scope.variables)
    commands = script.commands
    worst = _HARMLESS
    if not script.complete:
        view = lexical(text)
        commands += view.commands
        if not view.complete:
            worst = _too_long(text)
    if "\n" in text and (typed := _typed_escape(text)) is not None:
        return typed
    for command in commands:
        if scope.budget <= 0:
            return _graver(worst, warn("too-many-commands", "There are too many commands to look at them all.", 0.5))
        scope.budget -= 1
        worst = _graver(worst, _judge_command(command, scope))
        if worst.action == "BLOCK":
            return worst
        innermost = layers(command)[-1]
        execution.remember_planted(innermost, scope)
        network.remember_fetched(innermost, scope)
        files.enters_folder(innermost, scope)
    return worst


def _too_long(text: str) -> Decision:
    """Decide the mildest verdict on text that is too long to be looked at command by command to its end."""
    if DEVICE.search(text) or paths.SECRET.search(text):
        return block("too-long", "A command too long to be looked at names secret files or the shell's sockets.", 0.7)
    return warn("too-long", "The command is too long to be looked at as a whole.", 0.5)


def _judge_command(command: Command, scope: Scope) -> Decision:
    worst = _HARMLESS
    for layer in layers(command):
        for check in CHECKS:
            decision = check(layer, scope)
            if decision is not None and SEVERITY[decision.action] > SEVERITY[worst.action]:
                worst = decision
                if worst.action == "BLOCK":
                    return worst
    return worst


def _graver(first: Decision, second: Decision) -> Decision:
    return second if SEVERITY[second.action] > SEVERITY[first.action] else first


def _typed_escape(text: str) -> Decision | None:
    """Judge the lines after an interactive program, which are typed into it: does one of them ask for a shell?"""
    lines = text[:MAX_TEXT].split("\n")
    for index, line in enumerate(lines[:40]):
        for command in lexical(line).commands[-1:]:
            innermost = layers(command)[-1]
            name = program(innermost)
            mode = programs.INTERACTIVE.get(name)
            typed = "\n".join(lines[index + 1 :])
            if mode is None or not typed or (mode == "bare" and operands(innermost.arguments)):
                continue
            if languages.TYPED_ESCAPE.search(typed) or DEVICE.search(typed):
                return block("typed-escape", f"A line typed into `{name}` asks for a shell.", 0.88)
            if mode == "bare" and (paths.SECRET.search(typed) or paths.PERSISTENT.search(typed)):
                return block("typed-code", f"Code typed into `{name}` names a secret or persistent file.", 0.85)
            language = languages.INTERPRETERS.get(name)
            decision = execution.judge_language(typed, language[0], name) if language else None
            if decision is not None and decision.action == "BLOCK":
                return decision
    return None
