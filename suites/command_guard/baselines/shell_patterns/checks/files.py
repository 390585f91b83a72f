"""Files that are read although secret, and places that are written although not the user's own."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from typing import Final

from suites.command_guard.baselines.shell_patterns.arguments import operands, option_values, program
from suites.command_guard.baselines.shell_patterns.model import Command, Decision
from suites.command_guard.baselines.shell_patterns.printing import printed
from suites.command_guard.baselines.shell_patterns.rules import paths, programs
from suites.command_guard.baselines.shell_patterns.scope import MAX_TEXT, Scope, block, warn

_DOTS: Final = re.compile(r"/(?:\.?/)+")
_PARENT: Final = re.compile(r"/(?!\.\./)[^/\s]{1,255}/\.\.(?=/)")
_RELATIVE: Final = re.compile(r"[\w.][\w./*?-]*")
_WILD: Final = re.compile(r"[*?\[]")


def plain_path(text: str) -> str:
    """Take `//`, `/./` and `/x/../` out of the paths in a text (not out of `://`)."""
    text = text[:MAX_TEXT]
    if "//" not in text and "/." not in text:
        return text
    text = _DOTS.sub("/", text.replace("://", ":\x00")).replace(":\x00", "://")
    for _ in range(8):
        text, changed = _PARENT.subn("", text)
        if not changed:
            break
    return text


def _without_prose(command: Command) -> Iterator[str]:
    """Yield the arguments that can name files: without patterns and messages."""
    name = program(command)
    skip_pattern = name in programs.PATTERN_FIRST and not any(text in {"-e", "-f"} for text in command.arguments)
    previous = ""
    for text in command.arguments:
        if skip_pattern and not text.startswith("-"):
            skip_pattern = False
        elif name not in programs.MESSAGE_PROGRAMS or not programs.MESSAGE_OPTIONS & {previous, text.partition("=")[0]}:
            yield plain_path(text)
        previous = text


def _seen_from(folder: str, text: str) -> str:
    """Resolve a relative path in the folder that an earlier `cd` went to."""
    return plain_path(f"{folder}/{text}") if folder and _RELATIVE.fullmatch(text[:256]) else text


def enters_folder(command: Command, scope: Scope) -> None:
    """Keep where `cd` and `pushd` go, for the commands after them."""
    if program(command) in {"cd", "pushd"}:
        going = (operands(command.arguments) or ["~"])[0]
        scope.folder = _seen_from(scope.folder, going)[:256]


def reads_secret(command: Command, scope: Scope) -> Decision | None:
    """Judge any mention of a secret file by a program that could read it."""
    name = program(command)
    decision: Decision | None = None
    for redirect in command.redirects:
        target = _seen_from(scope.folder, plain_path(redirect.target.text))
        if not redirect.writes and (paths.SECRET.search(target) or paths.CREDENTIAL.search(target)):
            return block("secret-read", "It reads a file that holds secrets.", 0.97)
    if name in programs.LOOKERS:
        return None
    own_keys = (
        set(option_values(command.arguments, programs.CREDENTIAL_OPTIONS))
        if name in programs.CREDENTIAL_OWNERS
        else set()
    )
    for text in (_seen_from(scope.folder, text) for text in _without_prose(command)):
        if paths.SECRET.search(text):
            return block("secret-read", f"`{name[:40]}` is given a file that holds secrets.", 0.97)
        if paths.CREDENTIAL.search(text) and text not in own_keys and name not in {"ssh-add", "ssh-keygen", "chmod"}:
            return block("credential-read", f"`{name[:40]}` is given a user's keys or tokens.", 0.9)
        if _WILD.search(text) and len(text) < 200 and _matches_secret(text):
            return block("secret-read", "A wildcard covers a file that holds secrets.", 0.85)
        if decision is None and paths.ACCOUNTS.search(text):
            decision = warn(
                "accounts-read", f"`{name[:40]}` is given a list of accounts or a history of commands.", 0.6
            )
    return decision


def _matches_secret(pattern: str) -> bool:
    if not pattern.startswith("/") or pattern.endswith(("/*", "/**")) or len(re.sub(r"[*/\[\]]", "", pattern)) < 4:
        return False
    return any(
        fnmatch.fnmatchcase(path, pattern) and path.count("/") == pattern.count("/") for path in paths.SECRET_EXAMPLES
    )


def _is_persistent(text: str) -> bool:
    return bool(paths.PERSISTENT.search(text) or paths.KEYS_THAT_ADMIT.search(text))


def writes_place(command: Command, scope: Scope) -> Decision | None:
    """Judge the files that redirections, output options and operands write."""
    name = program(command)
    targets = [plain_path(redirect.target.text) for redirect in command.redirects if redirect.writes]
    arguments = [plain_path(text) for text in command.arguments]
    targets += option_values(arguments, programs.OUTPUT_OPTIONS) if name not in programs.LOOKERS else ()
    targets += [text[3:] for text in arguments if name == "dd" and text.startswith("of=")]
    files = operands(arguments)
    if name in programs.REPLACES_CONTENT or (
        name == "sed" and any(re.match(r"-\w*i|--in-place", text) for text in arguments)
    ):
        targets += files
    elif name in programs.REPLACES_LAST and len(files) > 1:
        targets += files[-1:]
    decision: Decision | None = None
    for target in targets:
        if paths.STARTUP.search(target):
            decision = _startup(command, scope) or decision
        if _is_persistent(_seen_from(scope.folder, target)):
            return block("persistent-write", "It writes to a place that later sessions, services or logins obey.", 0.95)
        if paths.LOCAL_SOFTWARE.match(target):
            decision = warn("system-write", "It installs a file for all users by hand.", 0.6)
        elif paths.SYSTEM.match(target):
            return block("system-write", "It writes into a folder of the operating system.", 0.9)
    if name in programs.LOOKERS:
        return decision
    changed = files if name in programs.CHANGES_FILE or name in programs.EDITORS else []
    for text in changed:
        if _is_persistent(text):
            return block(
                "persistent-write", f"`{name[:40]}` changes a place that later sessions, services or logins obey.", 0.9
            )
        if decision is None and paths.SYSTEM.match(text):
            decision = warn("system-change", f"`{name[:40]}` changes a folder of the operating system.", 0.6)
    for text in _without_prose(command):
        # Harmless commands name such files to read them, but not inside a piece of code or a setting.
        reading = name in programs.READERS and re.fullmatch(r"[^\s'\"=@()|>]+", text)
        if not reading and _is_persistent(text):
            return block(
                "persistent-write", f"`{name[:40]}` is given a place that later sessions, services or logins obey.", 0.8
            )
    return decision


def written_text(command: Command) -> str | None:
    """Find what the command prints, when that stands on the command line; None when it does not."""
    producer = command.upstream[-1] if program(command) in {"tee", "sponge"} and command.upstream else command
    if (text := printed(producer)) is not None:
        return text
    return producer.stdin if program(producer) in {"cat", "tee", "sponge", "dd"} else None


def _startup(command: Command, scope: Scope) -> Decision:
    text = written_text(command)
    if text is not None:
        honest = all(paths.HONEST_STARTUP_LINE.match(line) for line in text[:MAX_TEXT].split("\n"))
        if honest and scope.judge(text).action != "BLOCK":
            return warn("startup-edit", "It adds an ordinary line to a start-up file.", 0.5)
    elif program(command) in programs.EDITORS | {"cp", "mv", "ln"} and ".git/hooks" not in " ".join(command.arguments):
        return warn("startup-edit", "It changes a start-up file.", 0.5)
    return block("startup-write", "It plants commands in a start-up file.", 0.85)
