"""`baseline/shell-patterns`: a rule-based shell guard, the bar that models must beat.

The tables of `programs.toml` decide over the commands that `parse.py` finds. It is a yardstick and no protection:
whoever knows it can evade it.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, takewhile, zip_longest
from typing import Final, Literal

from evalake.core.files import tables_beside
from evalake.suites.command_guard.baselines.parse import Command, assignment, parse, printed

Action = Literal["ALLOW", "WARN", "BLOCK"]

_TABLES: Final = tables_beside(__file__, "programs.toml")


def _rows(text: str) -> Mapping[str, frozenset[str]]:
    """Read rows of `programs: options`, cut by `;` or the end of a line."""
    rows = (row.partition(":") for row in text.replace("\n", ";").split(";") if row.strip())
    return {program: frozenset(options.split()) for programs, _, options in rows for program in programs.split()}


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern: its lines are one, and parts of other patterns stand in it by name."""
    text = text.replace("\n", "")
    for name in ("start", "home", "calls"):
        text = text.replace(f"<{name}>", _TABLES["parts"][name].replace("\n", ""))
    return re.compile(text)


_LANGUAGES: Final = [(each["programs"].split(), each["runs"], "scripted" in each) for each in _TABLES["languages"]]
NAMES: Final[Mapping[str, frozenset[str]]] = {
    **{name: frozenset(text.split()) for name, text in _TABLES["programs"].items()},
    "scripted": frozenset(program for programs, _, scripted in _LANGUAGES if scripted for program in programs),
    "coded": frozenset(program for programs, *_ in _LANGUAGES for program in programs),
}
"""Lists of programs, options and variables."""
OPTIONS: Final = {kind: _rows(text) for kind, text in _TABLES["options"].items()}
WRAPPERS: Final = [
    (frozenset(names.split()), tuple(phrase.split()), frozenset(valued.split()), skipped)
    for names, phrase, valued, skipped in _TABLES["wrappers"]["rows"]
]
"""Programs that run the rest of their line: words that make them do so, options with a value, and words to skip."""
PATTERNS: Final = {name: _pattern(text) for name, text in _TABLES["patterns"].items()}
RULES: Final[Mapping[str, tuple[Action, float, str]]] = _TABLES["rules"]
"""Each rule's action, the confidence in it, and the reason, for the program that it is found at."""
LOOKS: Final[Mapping[str, list[tuple[list[str], str]]]] = {
    place: [(patterns.split(), rule) for patterns, rule in rules.items()] for place, rules in _TABLES["looks"].items()
}
"""Where a text stands: patterns that it holds together, and the rule that they make."""
DANGEROUS: Final = [(_pattern(text), what) for what, text in _TABLES["dangerous"].items()]
RUNS: Final = {program: _pattern(f"(?m){runs}") for programs, runs, _ in _LANGUAGES for program in programs}
"""Programs with a language of their own, and what in their code runs commands."""


def is_one(name: str, *lists: str) -> bool:
    """Tell whether a name is in one of the lists."""
    return any(name in NAMES[each] for each in lists)


def found(pattern: str, text: str) -> bool:
    """Tell whether a text holds a pattern."""
    return PATTERNS[pattern].search(text) is not None


@lru_cache(maxsize=4096)  # bounded, for there is no end to the names in commands
def _common_name(name: str) -> str:
    bare = re.sub(r"-?\d[\d.]*$", "", name)
    versioned = not is_one(name, "coded") and is_one(bare, "coded", "shells")
    return "sh" if name in {"$SHELL", "${SHELL}", "$BASH", "$0"} else bare if versioned else name


def program(command: Command) -> str:
    """Find the program's common name: without folder and, for interpreters, without version."""
    name = command.path.rpartition("/")[2]
    return _common_name(name) if len(name) < 64 else name


def option_values(arguments: Sequence[str], options: frozenset[str]) -> Iterator[str]:
    """Yield the values of the given options, as `-o v`, `-ov`, `-xo v`, `--opt v` or `--opt=v`."""
    for argument, following in zip_longest(arguments, arguments[1:]) if options else ():
        head, equals, tail = argument.partition("=")
        bundled = len(argument) < 8 and argument[1:].isalnum() and f"-{argument[-1]}" in options
        if equals and head in options and len(head) > 2:
            yield tail
        elif argument not in options and argument[:2] in options and argument[:1] == "-":
            yield argument[2:]
        elif following is not None and (argument in options or (argument[:1] == "-" and bundled)):
            yield following


def any_of(commands: Iterable[Command], *lists: str) -> bool:
    """Tell whether one of some commands is of a program in one of the lists."""
    return any(is_one(program(command), *lists) for command in commands)


def operand_places(arguments: Sequence[str], valued: frozenset[str]) -> Iterator[int]:
    """Yield the places of the arguments that are neither options nor the values of the options in `valued`."""
    pairs = enumerate(zip(arguments, ("", *arguments), strict=False))
    return (n for n, (text, before) in pairs if before not in valued and (text[:1] not in {"-", "+"} or text == "-"))


def operands(arguments: Sequence[str], valued: frozenset[str] = frozenset()) -> list[str]:
    """List the arguments that are neither options nor the values of the options in `valued`."""
    return [arguments[place] for place in operand_places(arguments, valued)]


# ---- the guard -------------------------------------------------------------------------------------------------


MAX_DEPTH: Final = 6  # levels of code inside code that are followed
MAX_TEXT: Final = 8_192  # longer text is cut before a pattern is tried on it
MAX_LAYERS: Final = 12


@dataclass(frozen=True, slots=True)
class Decision:
    """The guard's answer: `reason` is one sentence, `confidence` is 0..1, `rule` is the id of the rule that decided."""

    action: Action
    reason: str
    confidence: float
    rule: str


@dataclass(slots=True)
class Scope:
    """State shared by all commands of one text, nested ones included."""

    depth: int = 0
    budget: int = 1_500  # commands that may still be looked at; nested code costs one for every 64 characters
    variables: dict[str, str] = field(default_factory=dict)
    planted: dict[str, str] = field(default_factory=dict)  # files that earlier commands wrote, with their content
    fetched: set[str] = field(default_factory=set)  # files that earlier commands saved from another machine

    def judge(self, code: str) -> Iterator[str]:
        """Judge shell code that the current command would run: yield the gravest rule, if any."""
        self.budget -= len(code) // 64
        if self.depth >= MAX_DEPTH:
            yield "nested-too-deep"
            return
        self.depth += 1
        rule, _ = _gravest(_judge(code, self))
        self.depth -= 1
        if rule != "no-match":
            yield rule


@dataclass(frozen=True, slots=True)
class Call:
    """A command as the checks see it: its program's common name, its arguments as one line, its files."""

    command: Command
    name: str
    line: str
    arguments: tuple[str, ...]
    written: tuple[str, ...]
    read: tuple[str, ...]

    @classmethod
    def of(cls, command: Command) -> "Call":
        """Build a call from a command."""
        name = program(command)
        files = [(how, plain_path(target)) for how, target in command.redirects]
        written = tuple(target for how, target in files if ">" in how)
        read = tuple(target for how, target in files if not {">", "&"} & {*how})
        line = " ".join((name, *command.arguments))[:MAX_TEXT] + " "
        return cls(command, name, line, tuple(map(plain_path, command.arguments)), written, read)


def guard(command: str) -> Decision:
    """Judge one command line (or several lines) as a shell would run it.

    Pure and deterministic: nothing is run, read or asked. Never raises: text that cannot be parsed is cut at every
    operator, and text beyond the limits is at least WARN.
    """
    found, name = _gravest(_judge(command.replace("\x00", "").replace("\\\n", ""), Scope()))
    rule, _, what = found.partition(": ")
    action, confidence, reason = RULES[rule]
    return Decision(action, reason.format(name[:40], what), confidence, rule)


def _action(rule: str) -> Action:
    return RULES[rule.partition(": ")[0]][0]


def _gravest(rules: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Choose the first of the gravest rules."""
    return max([("no-match", ""), *rules], key=lambda found: ("ALLOW", "WARN", "BLOCK").index(_action(found[0])))


def _judge(text: str, scope: Scope) -> Iterator[tuple[str, str]]:
    """Yield the rules that find something in a text, with the program at which they do."""
    if bomb := PATTERNS["fork_bomb"].search(text[:MAX_TEXT]):
        yield "fork-bomb", bomb["name"]
    commands, complete = parse(text, scope.variables)
    if not complete:
        yield "too-much", ""
        yield from (("secret-read", "text") for pattern in ("device", "secret") if found(pattern, text))
    for command in commands:
        scope.budget -= 1
        if scope.budget <= 0:
            yield "too-much", ""
            return
        calls = [Call.of(layer) for layer in layers(command)]
        yield from ((rule, call.name) for call in calls for check in CHECKS for rule in check(call, scope))
        _remember(calls[-1], scope)


# ---- reading a command -----------------------------------------------------------------------------------------


def plain_path(text: str) -> str:
    """Take `//`, `/./` and `/x/../` out of a path, and cut it where patterns would become slow."""
    text = text[:MAX_TEXT]
    return f"/{posixpath.normpath(text).lstrip('/')}" if text[:1] == "/" and re.search(r"/\.?/|/\.\.", text) else text


def _behind(command: Command) -> Iterator[Command]:
    """Yield the command that a wrapper runs, with the words that `xargs` reads, and those that `find` runs."""
    words, name = command.words, program(command)
    for phrase, valued, skipped in (row for names, *row in WRAPPERS if name in names):
        given = words[(first := 1 + len(phrase)) :]
        if words[1:first] == phrase:
            plain = (place for place in operand_places(given, valued) if assignment(given[place]) is None)
            start = next(islice(plain, skipped, None), len(given))
            rest, assignments = given[start:], tuple(filter(None, map(assignment, given[:start])))
            rest = ("sh", "-c", *rest) if len(rest) == 1 and " " in rest[0] else rest
            rest += tuple(_stdin(command).split()[:64]) if name == "xargs" else ()
            yield from [replace(command, words=rest, assignments=assignments)] if rest or assignments else []
    for start in (n for n, word in enumerate(words, 1) if is_one(name, "finders") and is_one(word, "find_runs")):
        run = takewhile(lambda word: word not in {";", "+", "\\;"}, words[start:])
        yield Command(tuple(run), redirects=command.redirects)


def layers(command: Command) -> list[Command]:
    """List the command and every command behind it: `sudo env X=1 timeout 5 ls` has four."""
    listed = [command]
    for current in listed:
        listed += [*_behind(current)][: MAX_LAYERS - len(listed)]
    return listed


def written_text(command: Command) -> str:
    """Find what the command prints or passes on, where that stands on the command line; "" where it does not."""
    fed = command.stdin or "".join(printed(each) or "" for each in command.upstream[-1:])
    return printed(command) or (fed if is_one(program(command), "passes") else "")


def _stdin(command: Command) -> str:
    """Find the text that the command reads from its standard input, as `written_text` does."""
    return command.stdin or "".join(map(written_text, command.upstream[-1:]))


def _remember(call: Call, scope: Scope) -> None:
    """Keep the files that a command writes or fetches, for the commands after it."""
    targets = {*call.written, *(operands(call.arguments) if call.name == "tee" else ())} - {"", "/dev/null"}
    if (text := written_text(call.command)) and len(scope.planted) < 32:
        for target in targets:
            scope.planted[target] = f"{scope.planted.get(target, '')}\n{text}"[:MAX_TEXT].strip()
    if is_one(call.name, "fetchers") and not found("loopback", call.line):
        saved = [*targets, *option_values(call.arguments, NAMES["output_options"])]
        saved += [text.rpartition("/")[2] for text in call.arguments if PATTERNS["url"].fullmatch(text)]
        scope.fetched |= {posixpath.normpath(name) for name in saved[:32] if name}


# ---- the checks: each yields the rules that find something in a call -------------------------------------------


def _named(call: Call) -> Iterator[str]:
    """Yield the arguments that can name files: without patterns and messages."""
    pattern = is_one(call.name, "pattern_first") and not {"-e", "-f"} & {*call.arguments}
    messages, previous = OPTIONS["messages"].get(call.name, frozenset()), ""
    for text in call.arguments if not is_one(call.name, "lookers") else ():
        if pattern and text[:1] != "-":
            pattern = False
        elif not messages & {previous, text.partition("=")[0]}:
            yield text
        previous = text


def _reads(call: Call, _: Scope) -> Iterator[str]:
    own = {*option_values(call.arguments, NAMES["key_options"])} if is_one(call.name, "key_owners") else set()
    tools = is_one(call.name, "key_tools")
    for text in (*_named(call), *call.read):
        rules = (rule for patterns, rule in LOOKS["reads"] if found(patterns[0], text))
        yield from (rule for rule in rules if rule != "credential-read" or not (tools or text in own))


def _writes(call: Call, _: Scope) -> Iterator[str]:
    name, files = call.name, operands(call.arguments)
    targets = [*call.written, *(text[3:] for text in call.arguments if name == "dd" and text[:3] == "of=")]
    targets += files if is_one(name, "replaces_all") or found("edits_in_place", call.line) else ()
    targets += files[-1:] if is_one(name, "replaces_last") and len(files) > 1 else ()
    targets += option_values(call.arguments, NAMES["output_options"]) if not is_one(name, "lookers") else ()
    # Harmless commands name such files to read them, but not inside a piece of code or a setting
    given = (text for text in _named(call) if not is_one(name, "readers") or re.search(r"[\s'\"=@()|>]", text))
    if any(found("persistent", text) for text in (*given, *(files if is_one(name, "changes", "editors") else ()))):
        yield "persistent-write"
    yield from (rule for text in targets for patterns, rule in LOOKS["writes"] if found(patterns[0], text))
    if any(found("startup", target) for target in targets):
        text = written_text(call.command)
        honest = all(map(PATTERNS["honest_line"].match, text[:MAX_TEXT].split("\n")))
        harmless = honest if text else is_one(name, "editors", "replaces_last")
        yield "sensitive" if harmless else "persistent-write"


def _network(call: Call, _: Scope) -> Iterator[str]:
    name, line, parts = call.name, call.line, (*call.command.upstream, *call.command.inner)
    given = call.arguments if not is_one(name, "lookers", "readers") else ()
    for text in filter(PATTERNS["device"].search, (*call.written, *call.read, *given)):
        yield "transfer" if found("loopback", text) else "raw-connection"
    if is_one(name, "connectors") and not found("only_scans", line):
        saves = any(file[:5] != "/dev/" and not file.isdigit() for file in call.written)
        sends = {*call.read} - {"/dev/null"} or any(not is_one(program(part), "mute") for part in call.command.upstream)
        yield "raw-connection" if saves or sends or found("listens", line) else "transfer"
    if is_one(name, "fetchers") and (found("address", line) or not found("loopback", line)):
        told = [*call.arguments, *(text for part in parts for text in part.arguments)]
        saves = found("saves", line) or bool({*call.written} - {"/dev/null"})
        if any(found("accounts", text) or found("key_folder", text) for text in told):
            yield "exfiltration"
        elif found("uploads", line) or (saves and found("url", line)):
            yield "exfiltration" if found("address", line) else "transfer"


def _shells(call: Call, scope: Scope) -> Iterator[str]:
    """Judge shells, `eval` and its kin, and programs that are files, by the code, file or stream that they run."""
    command, arguments, shell = call.command, call.command.arguments, is_one(call.name, "shells")
    if found("version", call.line) or not (shell or found("runs_code", command.path)):
        return
    options = takewhile(lambda text: text[:1] in {"-", "+"}, arguments)
    flag = next((n for n, text in enumerate(options) if re.match(r"[-+][a-zA-Z]*c|--?[cC]ommand", text)), -1)
    rest = [text for text in arguments[flag + 1 :] if not re.fullmatch(r"[-+][a-zA-Z]{1,3}|--", text)]
    files = [text for text in operands(arguments, NAMES["shell_values"]) if not is_one(text, "stdin")]
    files = files if shell or call.name in {"source", "."} else [command.path] if call.name != "eval" else []
    if any_of(command.inner, "fetchers", "connectors", "encoders"):
        yield "hidden-code" if any_of(command.inner, "encoders") else "download-and-run"
    if flag >= 0 or (call.name == "eval" and "$" not in "".join(rest)):
        yield from scope.judge(" ".join(rest[: 1 if shell else None]))
    elif files and "-s" not in arguments:
        yield from scope.judge(scope.planted.get(files[0].removeprefix("./"), ""))
        yield from ["download-and-run"] if posixpath.normpath(files[0]) in scope.fetched else []
    elif any_of(command.upstream, "fetchers", "connectors"):
        yield "download-and-run"
    elif text := _stdin(command):
        yield from scope.judge(text)
    elif shell and not command.upstream and all("tty" in file for file in call.read):
        yield "shell"
    elif command.upstream or not command.inner:
        yield "hidden-code" if any_of(command.upstream, "decoders", "encoders") else "computed"


def _inline(call: Call, _: Scope) -> Iterator[str]:
    """Judge code in a tool's own language: on the command line, in a here-document, or through a pipe."""
    command, arguments, scripted = call.command, call.command.arguments, is_one(call.name, "scripted")
    pieces = [*(option_values(arguments, NAMES["code_flags"]) if scripted else arguments), command.stdin or ""]
    if command.upstream and command.stdin is None and (not operands(arguments) or "-" in arguments):
        pieces.append(written_text(command.upstream[-1]))
        hidden = not pieces[-1] and any_of(command.upstream, "fetchers", "connectors", "encoders")
        if scripted and hidden and "-m" not in arguments:
            yield "download-and-run"
    code = "\n".join(pieces)[:MAX_TEXT]
    if call.name in RUNS and RUNS[call.name].search(code):
        yield "inline-code"
    if is_one(call.name, "coded") and not is_one(call.name, "readers") and found("secret", code):
        yield "secret-read"
    looks = LOOKS["code"] if scripted else ()
    yield from (rule for patterns, rule in looks if all(found(pattern, code) for pattern in patterns))


def _commands_given(call: Call, scope: Scope) -> Iterator[str]:
    """Judge commands in variables, options and settings, which some program runs."""
    for variable, value in call.command.assignments:
        foreign = is_one(variable, "library_variables") and not PATTERNS["known_library"].match(value)
        if foreign or (is_one(variable, "search_variables") and found("open_folder", value)):
            yield "given-command"
        if PATTERNS["run_variable"].match(variable[:64]):
            yield from _helper(value, scope)
    for value in option_values(call.arguments, OPTIONS["commands"].get(call.name, frozenset())):
        yield from _helper(value, scope)
    pairs = zip_longest(call.arguments, call.arguments[1:], fillvalue="")
    for argument, following in pairs if is_one(call.name, "setting_programs") else ():
        if setting := PATTERNS["setting"].search(argument):
            value = setting["value"] or following
            plain_alias = setting["key"].lower().startswith("alias.") and value[:1] != "!"
            yield from _helper("" if plain_alias else value, scope)


def _helper(value: str, scope: Scope) -> Iterator[str]:
    """Judge a command that a program is told to use as its helper."""
    value = re.sub(r"^(?:exec=|execute(?:-silent)?[:(-]|become[:(]|!|\|)\s*", "", value.strip())[:MAX_TEXT]
    helper = (value.split() or [""])[0].strip("'\"").rpartition("/")[2]
    if is_one(helper, "helpers"):
        yield from (rule for rule in scope.judge(value) if _action(rule) == "BLOCK")
    elif helper and value[0] != "-":
        plain = re.fullmatch(r"[\w.-]+", value) and not is_one(helper, "shells")
        yield "computed" if plain else "given-command"


def _invocations(call: Call, _: Scope) -> Iterator[str]:
    """Judge invocations that the tables list, and shells handed to programs that have no other use for them."""
    if is_one(call.name, "root"):
        yield "privileged"
    if not found("version", call.line):
        yield from (f"dangerous-invocation: {what}" for pattern, what in DANGEROUS if pattern.match(call.line))
        shells = [text for text in call.arguments if found("shell_path", text)]
        copied = call.name in {"cp", "ln", "mv", "install"} and {*shells} & {*call.arguments[:-1]}
        takes_none = is_one(call.name, "lookers", "readers", "shells", "containers")
        if copied or (not takes_none and (shells or found("handed", call.line))):
            yield "handed-shell"


def _planted(call: Call, scope: Scope) -> Iterator[str]:
    """Judge a program that runs after a file was written that names a shell, secrets or a program to run."""
    runs = call.name and not is_one(call.name, "lookers", "readers")
    for file, content in scope.planted.items() if runs else ():
        body = re.sub(r"^#![^\n]*", "", content)
        stem = file.rpartition("/")[2].split(".")[0]
        given = stem and stem in call.line and not is_one(call.name, "shells") and found("program_path", body)
        if given or any(found(pattern, body) for pattern in ("planted", "shell_path", "secret")):
            yield "planted-payload"


CHECKS: Final[tuple[Callable[[Call, Scope], Iterator[str]], ...]] = (
    *(_reads, _writes, _network, _shells, _inline, _commands_given, _invocations, _planted),
)
