"""Shells: started bare, with code, with a script, through a pipe or a wrapper, and by `eval` and its kin."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Final

from suites.command_guard.baselines.shell_patterns.arguments import joined, operands, option_values, program, wrapper_of
from suites.command_guard.baselines.shell_patterns.checks.files import written_text
from suites.command_guard.baselines.shell_patterns.model import Command, Decision
from suites.command_guard.baselines.shell_patterns.rules import network, options, paths, programs
from suites.command_guard.baselines.shell_patterns.scope import Scope, block, warn

_CODE_FLAG: Final = re.compile(r"[-+][a-zA-Z]*c[a-zA-Z]*")
_FROM_POSITION: Final = re.compile(r"^\s*(?:exec\s+)?[\"']?\$(?:[0@*1]|\{[0@*1]\})")
_HIDES: Final = programs.names("base64 base32 xxd rev tr printf echo curl wget openssl nc cut sed awk dig gunzip hex")


def starts_shell(command: Command, scope: Scope) -> Decision | None:
    """Judge a shell program: alone, with code, with a script, or fed through a pipe."""
    name = program(command)
    if name not in programs.SHELLS:
        return None
    arguments = command.arguments
    if len(arguments) == 1 and arguments[0] in programs.VERSION_FLAGS:
        return None
    for index, argument in enumerate(arguments):
        if _CODE_FLAG.fullmatch(argument) or argument in {"-Command", "--command", "--commands"}:
            code = [text for text in arguments[index + 1 :] if not re.fullmatch(r"[-+][a-zA-Z]{1,3}|--", text)]
            if not code:
                return block("shell", "It starts a shell.", 0.9)
            if fed := _runs_fetched(command):
                return fed
            if not re.search(r"\w", code[0]) and (fed := _reads_stdin(command, scope)):  # `xargs -I% sh -c %`
                return fed
            return scope.judge(" ".join(code[1:]) if _FROM_POSITION.match(code[0]) else code[0])
        if not argument.startswith(("-", "+")):
            break
    files = operands(arguments, programs.SHELL_VALUES)
    if files and files[0] not in {"-", "/dev/stdin", "/dev/fd/0"} and "-s" not in arguments:
        return _runs_script(command, files[0], scope)
    return _reads_stdin(command, scope) or block("shell", "It starts an interactive shell.", 0.92)


def _runs_script(command: Command, script: str, scope: Scope) -> Decision | None:
    if fed := _runs_fetched(command):
        return fed
    if script in scope.planted:
        return scope.judge(scope.planted[script])
    if posixpath.normpath(script) in scope.fetched:
        return block("download-and-run", "It runs a file that it fetched from another machine.", 0.9)
    if paths.SCRATCH.match(script):
        return warn("scratch-script", "It runs a script from a folder that anybody can write to.", 0.5)
    return None


def _runs_fetched(command: Command) -> Decision | None:
    inner = [program(part) for word in command.words for part in word.inner]
    if any(name in network.FETCHERS or name in network.RAW_CONNECTORS for name in inner):
        return block("download-and-run", "It runs what it fetches from another machine.", 0.95)
    if any(name in {"base64", "base32", "xxd", "rev", "openssl"} for name in inner):
        return block("hidden-code", "It runs code that is hidden by an encoding.", 0.9)
    return None


def _fetches(producers: Sequence[Command]) -> Decision | None:
    if any(program(part) in network.FETCHERS | network.RAW_CONNECTORS for part in producers):
        return block("download-and-run", "It pipes what it fetches from another machine into a shell.", 0.97)
    return None


def _reads_stdin(command: Command, scope: Scope) -> Decision | None:
    """Judge what a shell reads from its standard input; None when a person types it."""
    if command.stdin is not None:
        return scope.judge(command.stdin)
    for redirect in command.redirects:
        if (
            not redirect.writes
            and not redirect.target.text.isdigit()
            and "&" not in redirect.operator
            and "tty" not in redirect.target.text
        ):
            return warn("script-from-file", "A shell runs the content of a file.", 0.5)
    if not command.upstream:
        return None
    if fetched := _fetches(command.upstream):
        return fetched
    producers = [program(part) for part in command.upstream]
    text = written_text(command.upstream[-1])
    if text is not None:
        return scope.judge(text)
    if any(name in network.SHELL_FEEDERS for name in producers):
        return block("hidden-code", "It pipes decoded or generated text into a shell.", 0.9)
    return warn("script-from-pipe", "A shell runs what another program prints.", 0.6)


def evaluates(command: Command, scope: Scope) -> Decision | None:
    """Judge `eval`, `source`, `trap`, `alias`, and program names that are themselves computed."""
    name = program(command)
    if name == "alias":
        return _alias(command, scope)
    if name in {"eval", "source", ".", "trap"} and command.arguments:
        if fed := _runs_fetched(command):
            return fed
        target = command.arguments[0]
        if name == "eval" and "$" not in target:
            return scope.judge(" ".join(command.arguments))
        if name == "eval" and not any(word.inner for word in command.words[1:]):
            return _fetches(command.upstream) or warn("eval", "It runs text that is computed.", 0.6)
        if name == "trap":
            return scope.judge(target) if len(command.arguments) > 1 else None
        if target in {"/dev/stdin", "/dev/fd/0"}:
            return _reads_stdin(command, scope)
        return _runs_script(command, target, scope)
    return _computed_program(command, scope)


def _computed_program(command: Command, scope: Scope) -> Decision | None:
    first = command.path
    if "/" in first and posixpath.normpath(first) in scope.fetched:
        return block("download-and-run", "It runs a file that it fetched from another machine.", 0.9)
    if paths.SCRATCH.match(first) and first not in scope.planted:
        return warn("scratch-program", "It runs a program from a folder that anybody can write to.", 0.5)
    if first.startswith(("$(", "`")) and command.words[0].inner:
        if any(program(part) in _HIDES for part in command.words[0].inner):
            return block("hidden-command", "The program's name is computed, which hides what runs.", 0.85)
        return warn("computed-command", "The program's name is computed.", 0.5)
    if "/" in first and re.search(r"[?*\[]", first) and not first.startswith("["):
        return block("hidden-command", "The program's name is a wildcard, which hides what runs.", 0.8)
    return None


def _alias(command: Command, scope: Scope) -> Decision | None:
    for argument in command.arguments:
        alias, equals, value = argument.partition("=")
        if equals and alias in {"sudo", "su", "ssh", "passwd"} and not value.strip().startswith(alias):
            return block("alias", f"It puts another command in the place of `{alias}`.", 0.85)
        if equals and (decision := scope.judge(value)).action == "BLOCK":
            return decision
    return None


def wraps_shell(command: Command, scope: Scope) -> Decision | None:
    """Judge wrappers told to start a shell, wrappers with shell code in an option, and terminal multiplexers."""
    name = program(command)
    text = joined(command)
    if name in options.OPENS_SHELL and not re.search(options.OPENS_SHELL[name], text):
        return block("shell", f"`{name}` opens a new shell.", 0.85)
    if (wrapped := wrapper_of(command)) is None or (
        len(command.arguments) == 1 and command.arguments[0] in programs.VERSION_FLAGS
    ):
        return None
    wrapper, start = wrapped
    arguments = command.arguments[start - 1 :]
    if wrapper.shell and any(argument in programs.names(wrapper.shell) for argument in arguments):
        return block("shell", f"`{name}` is asked for a shell.", 0.92)
    if (code := next(option_values(arguments, programs.names(wrapper.code)), None)) is not None:
        decision = scope.judge(code)
        if decision.action != "ALLOW" or not wrapper.privileged:
            return decision
        return warn("privileged", f"`{name}` runs a command with other rights.", 0.6)
    left = operands(arguments, programs.names(wrapper.values))
    if (
        wrapper.bare_shell
        and len(left) <= wrapper.operands
        and not re.search(r"(?:^|\s)-(?:-help|-version|-list|-replay|h|V|l)\b", text)
    ):
        return block("shell", f"`{name}` without a command starts a shell.", 0.85)
    if wrapper.privileged:
        return warn("privileged", f"`{name}` runs a command with other rights.", 0.6)
    return None
