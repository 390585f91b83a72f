"""Commands that run because a program is asked to run them: by options, settings, variables, code and planted files."""

from __future__ import annotations

import re
from typing import Final

from suites.command_guard.baselines.shell_patterns.arguments import joined, operands, option_values, program
from suites.command_guard.baselines.shell_patterns.checks.files import written_text
from suites.command_guard.baselines.shell_patterns.model import Command, Decision
from suites.command_guard.baselines.shell_patterns.rules import languages, network, options, paths, programs
from suites.command_guard.baselines.shell_patterns.scope import MAX_TEXT, Scope, block, warn

_SETTING_PREFIX: Final = re.compile(r"^(?:exec=|execute[:(-]|execute-silent[:(]|become[:(]|!|\|)\s*")
_FLAGS_THAT_RUN: Final = re.compile(
    r"--require|--import|-r\s|javaagent|(?:^|\s)-[dMmeE]|--eval|\$\(|`|checkpoint|OnError|OnOutOf"
)
_KNOWN_LIBRARY: Final = re.compile(
    r"^$|lib(?:jemalloc|tcmalloc|asan|tsan|mimalloc|eatmydata|fakeroot|faketime|nss_wrapper|gtk3-nocsd|SegFault)[\w.-]*$"
)
_JOINED_LITERALS: Final = re.compile(r"(?P<quote>['\"])\s{0,9}[+.]\s{0,9}(?P=quote)")
"""Where `'sys' + 'tem'` is put together from its pieces."""
_SHEBANG: Final = re.compile(r"^#![^\n]*")


def sets_environment(command: Command, scope: Scope) -> Decision | None:
    """Judge environment variables that make a later program run something."""
    for assignment in command.assignments:
        name, value = assignment.name, assignment.value.text.strip()[:MAX_TEXT]
        if name in options.LIBRARY_ENVIRONMENT and not _KNOWN_LIBRARY.search(value):
            return block("library-injection", f"{name} makes programs load foreign code.", 0.9)
        if name in options.SEARCH_PATH_ENVIRONMENT and re.search(r"(?:^|:)(?:/tmp|/dev/shm|/var/tmp)(?:[/:]|$)", value):
            return block("search-path", f"{name} contains a folder that anybody can write to.", 0.8)
        runs = name in options.RUNS_FROM_ENVIRONMENT or options.RUNS_BY_NAME.match(name[:64])
        if runs and (
            decision := _helper(value, scope, f"{name} makes programs run this command.", "environment-command")
        ):
            return decision
    return None


def _helper(value: str, scope: Scope, reason: str, rule: str) -> Decision | None:
    """Judge a command that a program is told to use as its helper."""
    value = _SETTING_PREFIX.sub("", value.strip())[:MAX_TEXT]
    if value.startswith("-"):
        return block(rule, reason, 0.8) if _FLAGS_THAT_RUN.search(value) else None
    first = value.split(None, 1)[0].strip("'\"") if value.strip() else ""
    if not first or first in {"none", "0", "1"}:
        return None
    helper = first.rsplit("/", 1)[-1]
    if helper in options.HONEST_HELPERS:
        nested = scope.judge(value)
        return block(rule, reason, 0.85) if nested.action == "BLOCK" else None
    if re.fullmatch(r"[\w.-]+", value) and helper not in programs.SHELLS and helper not in programs.WRAPPERS:
        return warn(rule, reason, 0.5)
    return block(rule, reason, 0.85)


def option_runs_command(command: Command, scope: Scope) -> Decision | None:
    """Judge the value of options and settings that a program runs as a command."""
    name = program(command)
    arguments = command.arguments
    if name in options.COMMAND_OPTIONS:
        for value in option_values(arguments, options.COMMAND_OPTIONS[name]):
            if decision := _helper(_exec_part(value), scope, f"`{name}` is told to run a command.", "option-command"):
                return decision
    if name in options.SETTING_PROGRAMS:
        for index, argument in enumerate(arguments):
            match = options.SETTINGS.search(argument[:MAX_TEXT])
            if match is None:
                continue
            value = match["value"] or (arguments[index + 1] if index + 1 < len(arguments) else "")
            if match["key"].lower().startswith("alias.") and not value.startswith("!"):
                continue
            if decision := _helper(value, scope, f"A setting of `{name}` runs a command.", "setting-command"):
                return decision
    return None


def _exec_part(value: str) -> str:
    if value in {"dot", "bell"} or value.startswith(("dot", "echo", "ttyout", "sleep")):
        return ""
    return value


def runs_inline_code(command: Command, scope: Scope) -> Decision | None:
    """Judge code in a tool's own language: on the command line, in a here-document, or through a pipe."""
    name = program(command)
    entry = languages.INTERPRETERS.get(name)
    if entry is None:
        return None
    language_name, flags = entry
    arguments = command.arguments
    pieces = list(option_values(arguments, programs.names(flags))) if flags else list(arguments)
    has_file = any(not text.startswith("-") for text in arguments) or bool(pieces)
    if command.stdin is not None:
        pieces.append(command.stdin)
    elif command.upstream and (not has_file or "-" in arguments):
        text = written_text(command.upstream[-1])
        producers = {program(part) for part in command.upstream}
        if (
            text is None
            and flags
            and producers & (network.FETCHERS | network.RAW_CONNECTORS | {"base64", "base32", "xxd"})
            and "-m" not in arguments
        ):
            return block("download-and-run", f"`{name}` runs fetched or decoded text.", 0.93)
        pieces += [] if text is None else [text]
    return judge_language("\n".join(pieces), language_name, name)


def judge_language(code: str, language_name: str, name: str) -> Decision | None:
    """Judge a piece of code in one of the known languages."""
    language = languages.LANGUAGES[language_name]
    code = _JOINED_LITERALS.sub("", code[:MAX_TEXT])
    if not code:
        return None
    if language.executes.search(code):
        return block("inline-code-runs-command", f"Code given to `{name}` runs commands.", 0.93)
    if language.connects.search(code):
        return block("inline-code-connects", f"Code given to `{name}` opens a connection.", 0.88)
    if paths.SECRET.search(code) and name not in programs.TEXT_TOOLS:
        return block("secret-read", f"Code given to `{name}` names a file that holds secrets.", 0.9)
    if paths.SHELL_PATH.search(code) and name not in programs.TEXT_TOOLS:
        return block("inline-code-runs-command", f"Code given to `{name}` names a shell.", 0.85)
    hidden = language.obscures.search(code)
    if language.fetches.search(code):
        if hidden or re.search(r"urlretrieve|getstore|write|open\s*\(|download\.file|\bcopy|put_contents|>", code):
            return block("inline-code-fetches", f"Code given to `{name}` fetches a file.", 0.8)
        return warn("inline-code-fetches", f"Code given to `{name}` talks to another machine.", 0.6)
    if hidden:
        decoded = re.search(r"decode|unhex|fromhex|unpack|inflate|rot13|atob|Base64|loads|Buffer", code) and re.search(
            r"exec|eval|assert|Function", code
        )
        if decoded:
            return block("hidden-code", f"Code given to `{name}` is hidden by an encoding.", 0.85)
        return warn("code-from-text", f"Code given to `{name}` builds code.", 0.4)
    return None


def handed_shell(command: Command, scope: Scope) -> Decision | None:
    """Judge a shell's path among the arguments of a program that has no other use for it."""
    name = program(command)
    if name in {"cp", "ln", "mv", "install"} and any(
        paths.SHELL_PATH.fullmatch(text) for text in command.arguments[:-1]
    ):
        return block("copied-shell", f"`{name}` puts a shell under another name.", 0.8)
    if name in programs.MENTIONING or name in programs.CONTAINERS or name in programs.SHELLS:
        return None
    if any(paths.SHELL_PATH.search(plain) for plain in (text[:MAX_TEXT] for text in command.arguments)):
        return block("handed-shell", f"`{name[:40]}` is handed a shell to run.", 0.88)
    if re.search(
        r"(?:exec|execute|system|spawn|run|up|command|cmd|hook)[=:(]\s*['\"]?(?:ba|da|z|k)?sh(?:\s+-\w|$|['\"])",
        joined(command),
    ):
        return block("handed-shell", f"`{name[:40]}` is handed a shell to run.", 0.85)
    return None


def uses_planted_file(command: Command, scope: Scope) -> Decision | None:
    """Judge a program that runs after a file was written that names a shell, secrets or a program to run."""
    name = program(command)
    if not scope.planted or name in programs.MENTIONING or not name:
        return None
    mentions = joined(command) + " " + command.path
    for file, content in scope.planted.items():
        body = _SHEBANG.sub("", content[:MAX_TEXT])
        if paths.SHELL_PATH.search(body) or network.DEVICE.search(body):
            return block("planted-payload", f"`{name[:40]}` runs after a file that starts a shell was written.", 0.85)
        if paths.SECRET.search(body) or re.search(r"['\"]/etc/(?:passwd|cron)", body):
            return block(
                "planted-payload",
                f"`{name[:40]}` runs after a file that names a file of secrets or accounts was written.",
                0.75,
            )
        folder, _, leaf = file.rpartition("/")
        stem = leaf.split(".")[0]
        if (stem and stem in mentions) or (folder.count("/") > 1 and folder in mentions):
            if command.path == file or command.path == f"./{file}":
                return scope.judge(body)
            if paths.PROGRAM_PATH.search(body) and name not in programs.SHELLS:
                return block("planted-payload", f"`{name[:40]}` is given a file that names a program to run.", 0.7)
    return None


def remember_planted(command: Command, scope: Scope) -> None:
    """Keep what the command writes into a file, for the commands after it."""
    text = written_text(command)
    if text is None or len(scope.planted) >= 32:
        return
    targets = [redirect.target.text for redirect in command.redirects if redirect.writes]
    targets += operands(command.arguments) if program(command) == "tee" else []
    for target in targets:
        if target and target != "/dev/null":
            scope.planted[target] = (scope.planted.get(target, "") + "\n" + text)[:MAX_TEXT].strip()


def dangerous_invocation(command: Command, scope: Scope) -> Decision | None:
    """Judge invocations that the rule tables list as dangerous or unusual."""
    name = program(command)
    text = joined(command)
    if len(command.arguments) == 1 and command.arguments[0] in programs.VERSION_FLAGS:
        return None
    for known, pattern, what in options.DANGEROUS:
        if name in known and pattern.search(text):
            return block("dangerous-invocation", f"`{name}` {what}.", 0.85)
    unusual = options.UNUSUAL.get(name)
    if unusual is not None and re.search(unusual, text):
        return warn("unusual", f"`{name}` changes the system or is used for attacks as well as honest work.", 0.55)
    return None
