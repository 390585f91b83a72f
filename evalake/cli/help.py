"""The help of commands: arguments by name, bounds in words, and the suites."""

import re
from collections.abc import Callable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import CommandFunctionType

from evalake.core.errors import EvalakeError

if TYPE_CHECKING:
    from evalake.suites.places import Manifest


_TYPE = re.compile(r" <[^>]*>$")
LONGEST = 400  # characters of a command's first sentence in lists
_BOUNDS = ((re.compile(r"\bx>=([0-9]+)"), r"at least \1"), (re.compile(r"\b([0-9]+)<=x<=([0-9]+)"), r"\1 to \2"))


class Command(TyperCommand):
    """A command with arguments and options as the user writes them."""

    def described_parameters(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """List arguments, then options, with their help."""
        told: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                title = "Arguments" if isinstance(parameter, TyperArgument) else "Options"
                told[title].append((_TYPE.sub("", record[0]), _bounds_in_words(record[1])))
        return told

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options."""
        for title, written in self.described_parameters(ctx).items():
            if written:
                with formatter.section(title):
                    formatter.write_dl(written)


def _bounds_in_words(help_text: str) -> str:
    for bounds, words in _BOUNDS:
        help_text = bounds.sub(words, help_text)
    return help_text


class Group(TyperGroup):
    """A group of commands, each with the whole first sentence of its help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, names in one column."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(f"{name:<11}", each.get_short_help_str(LONGEST)) for name, each in self.commands.items()]
            )


class App(typer.Typer):
    """A Typer app whose commands are `Command`s, with plain help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(rich_markup_mode=None, **settings)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = Command, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Add a command."""
        return super().command(name, cls=cls, **settings)


WIDTH = 78
INDENT = 2
CONTINUED = " \\\n"  # continues a line in a shell
_SHELL_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|\S)+""", re.DOTALL)


class SuiteCommand(Command):
    """A command whose help ends with the suites and examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the suites and their examples."""
        try:
            for line in _lines(ctx.command_path):
                formatter.write(f"{line}\n")
        except EvalakeError as error:  # like an invalid configuration
            formatter.write(f"\nThe suites cannot be listed: {error}\n")


def complete_suite(incomplete: str) -> list[tuple[str, str]]:
    """List the suites that complete a name, with their questions, for the shell."""
    try:
        return [(name, manifest.asks) for name, manifest in _manifests() if name.startswith(incomplete)]
    except EvalakeError:
        return []


def _manifests() -> "Iterator[tuple[str, Manifest]]":
    from evalake.suites.places import manifest, places

    for name, place in sorted(places().items()):
        yield name, manifest(place)


def _lines(command: str) -> Iterator[str]:
    manifests = list(_manifests())
    yield "\nSuites:"
    for name, each in manifests:
        yield from _wrapped(f"{name}: {each.asks}" if each.asks else name, INDENT)
        for what, names in (("prompt types", each.prompt_types), ("models", each.models), ("judges", each.judges)):
            if names:
                yield from _wrapped(f"{what}: {', '.join(names)}", 2 * INDENT)
    if any(each.examples for _, each in manifests):
        yield "\nExamples:"
    for name, each in manifests:
        for example in each.examples:
            yield _folded(f"{command} {name} {example}".rstrip())


def _wrapped(text: str, indent: int) -> list[str]:
    later = (indent + INDENT) * " "
    return wrap(text, WIDTH, initial_indent=indent * " ", subsequent_indent=later, break_on_hyphens=False)


def _folded(example: str) -> str:
    """Fold a command line over several lines that a shell accepts."""
    first, *others = _SHELL_WORD.findall(example)
    lines = [f"{INDENT * ' '}{first}"]
    for word in others:
        if len(lines[-1]) + 1 + len(word) + len(CONTINUED) <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{2 * INDENT * ' '}{word}")
    return CONTINUED.join(lines)
